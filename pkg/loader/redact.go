package loader

import "strings"

// echoed is the shortest piece of a secret that Redact looks for. A server that complains about a statement quotes some
// of it, cut anywhere, so pieces count as well; shorter ones occur by chance and give nothing away.
const echoed = 6

// escapes are the characters that literals of SQL and JSON put before others or write twice. A secret may come back in
// any of these spellings, or in several of them one inside the other.
const escapes = `\'"`

// Redact replaces in a server's text whatever could be a piece of a secret that the server was sent: six characters of
// it or more, or the whole of a shorter one, with or without the escapes of a literal. Empty secrets are ignored.
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

// piece returns the length of the longest beginning of text that is a piece of the secret, escapes aside, or 0. It
// neither begins nor ends with an escape: that is as likely the quote around the secret.
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
