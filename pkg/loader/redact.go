package loader

import "strings"

// echoed is the length of the shortest piece of a secret that Redact looks for. Servers quote parts of a statement, cut
// anywhere; shorter pieces occur by chance and reveal nothing.
const echoed = 6

// escapes are the characters that literals of SQL and JSON put before others or double. A secret may come back with any
// of them, nested as well.
const escapes = `\'"`

// Redact replaces pieces of secrets in a server's text: at least six characters, or the whole of a shorter secret, with
// or without the escapes of a literal. Empty secrets are ignored.
func Redact(text string, secrets ...Secret) string {
	plain := make([]string, len(secrets))
	for i, s := range secrets {
		plain[i] = strings.Map(func(r rune) rune {
			if strings.ContainsRune(escapes, r) {
				return -1
			}
			return r
		}, s.Reveal())
	}
	var b strings.Builder
	for len(text) > 0 {
		n := 0
		for _, s := range plain {
			n = max(n, piece(text, s))
		}
		if n == 0 {
			b.WriteByte(text[0])
			text = text[1:]
			continue
		}
		b.WriteString(stars)
		text = text[n:]
	}
	return b.String()
}

// piece returns the length of the longest prefix of text that is a piece of the secret, ignoring escapes, or 0. It
// neither begins nor ends with an escape, which may be the quote around the secret.
func piece(text, secret string) int {
	if secret == "" || strings.IndexByte(escapes, text[0]) >= 0 {
		return 0
	}
	var found []byte
	end := 0
	for i := range len(text) {
		if strings.IndexByte(escapes, text[i]) >= 0 {
			continue
		}
		if found = append(found, text[i]); !strings.Contains(secret, string(found)) {
			found = found[:len(found)-1]
			break
		}
		end = i + 1
	}
	if len(found) < min(echoed, len(secret)) {
		return 0
	}
	return end
}
