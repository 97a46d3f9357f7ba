package doris

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds of what is read about rows that the server could not take.
const (
	errorURLTime  = 5 * time.Second
	errorURLBytes = 2 << 10
)

// errorRows fetches what a backend wrote about rows it could not read. That is kept for a short time only and at an
// address that may lead nowhere from here, so it is fetched at once, and an answer to be had is a courtesy.
func (db *database) errorRows(ctx context.Context, be *url.URL, address string) string {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return ""
	}
	to.User = nil
	to = db.mapped(to)
	ctx, cancel := context.WithTimeout(ctx, errorURLTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return ""
	}
	// enable_all_http_auth. The address comes out of an answer: nobody else gets the password, and nobody in the clear who
	// had it encrypted.
	if to.Scheme == be.Scheme && to.Host == be.Host {
		r.SetBasicAuth(db.target.User, db.target.Password.Reveal())
	}
	answer, err := db.http.Do(r)
	if err != nil || answer.Status != http.StatusOK {
		return ""
	}
	text := answer.Body[:min(len(answer.Body), errorURLBytes)]
	return strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))
}
