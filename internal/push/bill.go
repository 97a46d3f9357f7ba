package push

import (
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// readPrices reads the file of --prices, if there is one.
func (p *push) readPrices() (err error) {
	if p.Config.Prices != "" {
		p.prices, err = host.ReadPrices(p.Config.Prices)
	}
	return err
}

// reportPrice is what this process of the run has cost. The requests are those that carry rows: puts, and of a staged method
// one get for each object, by which the database reads it. What looks at the store and tidies it up is not counted.
func (p *push) reportPrice(r *report.Report, s event.Snapshot) {
	if p.Config.Prices == "" {
		return
	}
	u := host.Usage{WireBytes: s.WireBytes, Time: s.At.Sub(p.started)}
	switch {
	case p.contract.Staged():
		u.Puts, u.Gets = s.StoredBatches, s.StoredBatches
	case p.caps().StoresObjects():
		u.Puts = s.Attempts // one that failed was a request all the same
	}
	r.Price = p.prices.Cost(u)
}

// caps are the loader's, or none without it.
func (p *push) caps() loader.Caps {
	if p.loader == nil {
		return loader.Caps{}
	}
	return p.loader.Caps()
}

// estimate is what the planned run would cost, and what of it nobody can know before. Bytes are those of the bodies: what
// the protocol puts around them is a percent or two.
func (p *push) estimate() (bill report.Price, open []string) {
	caps, _ := p.driver.Check(p.target) // which the plan was made with
	rows, took := p.plan.Rows, time.Duration(0)
	rate := int64(p.Config.MaxRate)
	switch {
	case p.plan.ByDuration && rate > 0:
		took = p.Config.Duration
		rows = int64(took.Seconds() * float64(rate) / float64(p.plan.EncodedRowBytes))
		open = append(open, "at --max-rate all the time")
	case p.plan.ByDuration:
		took, rows = p.Config.Duration, 0
		open = append(open, "traffic and requests are not known before")
	case rate > 0:
		took = time.Duration(float64(rows*p.plan.EncodedRowBytes) / float64(rate) * float64(time.Second))
		open = append(open, "at --max-rate all the time")
	case p.prices.InstancePerHour > 0:
		open = append(open, "without the instance, whose time is not known before")
	}
	u := host.Usage{WireBytes: rows * p.plan.EncodedRowBytes, Time: took}
	if caps.StoresObjects() {
		u.Puts = (rows + p.plan.BatchRows - 1) / p.plan.BatchRows
	}
	if caps.Staged {
		u.Gets = u.Puts
	}
	return p.prices.Cost(u), open
}

// priceText is a bill in one line.
func priceText(bill report.Price, open []string) string {
	switch {
	case len(bill.Items) == 0 && len(open) == 0:
		return "nothing: no price of the file is for what the run takes"
	case len(bill.Items) == 0:
		return "not known before"
	}
	parts := []string{fmt.Sprintf("about %s %s", money(bill.Total), bill.Currency)}
	for _, item := range bill.Items {
		parts = append(parts, fmt.Sprintf("%s %s", item.Name, money(item.Cost)))
	}
	return strings.Join(append(parts, open...), ", ")
}

// money has two decimals, and more where that would be nothing.
func money(amount float64) string {
	if amount != 0 && amount < 0.01 {
		return fmt.Sprintf("%.2g", amount)
	}
	return fmt.Sprintf("%.2f", amount)
}
