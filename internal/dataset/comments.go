package dataset

import (
	"math/bits"
	"strings"
)

// comments is one long text with the grammar and vocabulary of TPC-H (specification 4.2.2.14), of which every comment is a
// piece, as in dbgen. It is the same for all seeds, and small enough for a CPU's second-level cache. Unlike in dbgen, all
// nouns are equally likely, and there are no commas, which some formats quote.
type comments string

const (
	commentPlaces = 1 << 18         // where a piece may begin
	commentSlack  = 4 * longComment // after the last place
)

func newComments() comments { return comments(commentText(commentPlaces + commentSlack)) }

// commentText returns the first n bytes of the text.
func commentText(n int) string {
	g := grammar{
		"N": strings.Split("foxes|ideas|theodolites|pinto beans|instructions|dependencies|excuses|platelets|asymptotes|courts|"+
			"dolphins|multipliers|sauternes|warthogs|frets|dinos|attainments|somas|Tiresias|patterns|forges|braids|"+
			"hockey players|frays|warhorses|dugouts|notornis|epitaphs|pearls|tithes|waters|orbits|gifts|sheaves|depths|"+
			"sentiments|decoys|realms|pains|grouches|escapades|packages|requests|accounts|deposits", "|"),
		"V": strings.Split("sleep|wake|are|cajole|haggle|nag|use|boost|affix|detect|integrate|maintain|nod|was|lose|sublate|"+
			"solve|thrash|promise|engage|hinder|print|x-ray|breach|eat|grow|impress|mold|poach|serve|run|dazzle|snooze|doze|"+
			"unwind|kindle|play|hang|believe|doubt", "|"),
		"J": strings.Split("furious|sly|careful|blithe|quick|fluffy|slow|quiet|ruthless|thin|close|dogged|daring|brave|"+
			"stealthy|permanent|enticing|idle|busy|regular|final|ironic|even|bold|silent|special|pending|express|unusual", "|"),
		"D": strings.Split("sometimes|always|never|furiously|slyly|carefully|blithely|quickly|fluffily|slowly|quietly|"+
			"ruthlessly|thinly|closely|doggedly|daringly|bravely|stealthily|permanently|enticingly|idly|busily|regularly|"+
			"finally|ironically|evenly|boldly|silently", "|"),
		"P": strings.Split("about|above|according to|across|after|against|along|alongside of|among|around|at|atop|before|behind|"+
			"beneath|beside|besides|between|beyond|by|despite|during|except|for|from|in place of|inside|instead of|into|near|"+
			"of|on|outside|over|past|since|through|throughout|to|toward|under|until|up|upon|without|with|within", "|"),
		"X": strings.Split("do|may|might|shall|will|would|can|could|should|ought to|must|will have to|shall have to|"+
			"could have to|should have to|must have to|need to|try to", "|"),
		"T":        {".", ";", ":", "?", "!", "--"},
		"noun":     {"N", "J N", "J J N", "D J N"},
		"verb":     {"V", "X V", "V D", "X V D"},
		"place":    {"P the noun"},
		"sentence": {"noun verb T", "noun verb place T", "noun verb noun T", "noun place verb noun T", "noun place verb place T"},
	}
	var text strings.Builder
	for state := uint64(0); text.Len() < n; {
		g.write(&text, "sentence", &state)
	}
	return text.String()[:n]
}

// grammar lists the expansions of each symbol: words, which may be symbols.
type grammar map[string][]string

// write writes an expansion of a symbol, with a blank before every word.
func (g grammar) write(text *strings.Builder, symbol string, state *uint64) {
	choices, is := g[symbol]
	if !is {
		text.WriteString(" " + symbol)
		return
	}
	*state += gamma
	choice, _ := bits.Mul64(mix(*state), uint64(len(choices)))
	switch chosen := choices[choice]; symbol {
	case "T": // follows its word
		text.WriteString(chosen)
	case "noun", "verb", "place", "sentence":
		for part := range strings.SplitSeq(chosen, " ") {
			g.write(text, part, state)
		}
	default:
		text.WriteString(" " + chosen)
	}
}

// piece returns n bytes from a place on, or from the next place at which they neither begin nor end with a blank.
func (c comments) piece(place, n int) text {
	for c[place] == ' ' || c[place+n-1] == ' ' {
		place++
	}
	return text{string(c[place:]), n}
}
