package loader_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func TestRedact(t *testing.T) {
	const secret, token, odd = loader.Secret("wJalrXUtnFEMI/K7MDENG"), loader.Secret("abc"), loader.Secret(`se'cr\et"ive`)
	for text, want := range map[string]string{
		"":                                      "",
		"nothing here":                          "nothing here",
		`near '{"key":"wJalrXUtnFEMI/K7MDENG"}`: `near '{"key":"***"}`,
		"near 'FEMI/K7MDENG\"}' at line 1":      "near '***\"}' at line 1",
		"near '{\"key\":\"wJalrXU":              `near '{"key":"***`,
		"wJalrwJalrXwJalr":                      "wJalr***wJalr",
		"abc is short, and hidden as a whole":   "*** is short, and hidden as a whole",
		"ab is a piece of it, and is not":       "ab is a piece of it, and is not",
		"wJalrXUtnFEMI/K7MDENGabc":              "******",
		"grüße wJalrXUt":                        "grüße ***",

		// The spellings of literals.
		`escaped wJalrXUtnFEMI\/K7MDENG`: `escaped ***`,
		`as it is: se'cr\et"ive.`:        `as it is: ***.`,
		`key = 'se''cr\\et"ive', other`:  `key = '***', other`,
		`key = 'se\'cr\\et\"ive', other`: `key = '***', other`,
		`'{"key":"se\'cr\\\\et\\"ive"}'`: `'{"key":"***"}'`,
		`near '\'cr\\et"iv' at`:          `near '\'***' at`,
		`quotes '' "" \\ alone are none`: `quotes '' "" \\ alone are none`,
	} {
		require.Equal(t, want, loader.Redact(text, secret, token, odd, "", `'\"`), text)
	}
}

// Wherever the server cuts its quotation, no six characters of the secret are in it.
func TestRedactEveryCut(t *testing.T) {
	const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	for from := range len(secret) {
		for to := from; to <= len(secret); to++ {
			shown := loader.Redact("near '"+secret[from:to]+"'", secret)
			for n := range len(secret) - 6 {
				if strings.Contains(shown, secret[n:n+6]) {
					t.Fatalf("%s shows %s", shown, secret[n:n+6])
				}
			}
		}
	}
}
