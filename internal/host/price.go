package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/report"
)

// Prices are those of a price file that the user wrote. Nothing is looked up or guessed, neither a provider's prices
// nor the zone of a target: what has no price in the file costs nothing. A GB is 10^9 bytes, as on the bills.
type Prices struct {
	Currency string `yaml:"currency"` // as it is shown, "USD"

	// CrossAZ reports that the target is in another availability zone than this machine. CrossAZPerGB is the price of each
	// direction, and both are paid: 0.01 makes 0.02 a GB.
	CrossAZ      bool    `yaml:"cross_az"`
	CrossAZPerGB float64 `yaml:"cross_az_per_gb"`
	// NAT reports that the bytes go through a NAT gateway, at NATPerGB.
	NAT      bool    `yaml:"nat"`
	NATPerGB float64 `yaml:"nat_per_gb"`

	PutPer1000 float64 `yaml:"put_per_1000"` // of requests that put an object
	GetPer1000 float64 `yaml:"get_per_1000"` // of requests that get one

	InstancePerHour float64 `yaml:"instance_per_hour"` // of this machine
}

// ReadPrices reads a price file. An unknown key, a negative price and prices without a currency are errors.
func ReadPrices(path string) (Prices, error) {
	text, err := file.Read(path, file.MaxSettings)
	if err != nil {
		return Prices{}, fmt.Errorf("--prices: %w", err)
	}
	var p Prices
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField())
	if err = d.Decode(&p); err != nil && !errors.Is(err, io.EOF) { // io.EOF: an empty file
		err = errors.New(yaml.FormatError(err, false, false)) // without lines of the file, which may be the wrong one
	} else if d.Decode(new(any)) == nil {
		err = errors.New("it holds more than one document")
	} else {
		err = p.check()
	}
	if err != nil {
		return Prices{}, fmt.Errorf("--prices %s: %w", path, err)
	}
	return p, nil
}

func (p Prices) check() error {
	var problems []error
	given := false
	for _, k := range []struct {
		key   string
		price float64
	}{
		{"cross_az_per_gb", p.CrossAZPerGB}, {"nat_per_gb", p.NATPerGB}, {"put_per_1000", p.PutPer1000},
		{"get_per_1000", p.GetPer1000}, {"instance_per_hour", p.InstancePerHour},
	} {
		given = given || k.price != 0
		if k.price < 0 || math.IsNaN(k.price) || math.IsInf(k.price, 0) {
			problems = append(problems, fmt.Errorf("%s: %v is no price: write 0 or more", k.key, k.price))
		}
	}
	require := func(is bool, problem string) {
		if !is {
			problems = append(problems, errors.New(problem))
		}
	}
	require(!p.CrossAZ || p.CrossAZPerGB != 0, "cross_az: true without a price: write cross_az_per_gb")
	require(!p.NAT || p.NATPerGB != 0, "nat: true without a price: write nat_per_gb")
	require(given, "it holds no price: write instance_per_hour, put_per_1000, get_per_1000, cross_az_per_gb or nat_per_gb")
	require(p.Currency != "", "currency is missing: write it as the summary shall show it, currency: USD")
	return errors.Join(problems...)
}

// Usage is what a process of a run took, or would take. What is unknown is 0 and is not on the bill.
type Usage struct {
	WireBytes int64         // sent by the sockets; received bytes are answers, and not counted
	Puts      int64         // requests that put an object
	Gets      int64         // requests that get one
	Time      time.Duration // of the machine
}

// Cost returns the bill of a usage, without items of 0.
func (p Prices) Cost(u Usage) report.Price {
	bill := report.Price{Currency: p.Currency}
	add := func(name string, amount float64, unit string, each float64) {
		if amount > 0 && each > 0 {
			item := report.PriceItem{Name: name, Amount: amount, Unit: unit, Each: each, Cost: amount * each}
			bill.Items, bill.Total = append(bill.Items, item), bill.Total+item.Cost
		}
	}
	gigabytes := float64(u.WireBytes) / 1e9
	if p.CrossAZ {
		add("cross-AZ traffic", gigabytes, "GB", 2*p.CrossAZPerGB)
	}
	if p.NAT {
		add("NAT gateway", gigabytes, "GB", p.NATPerGB)
	}
	add("PUT requests", float64(u.Puts)/1000, "1000 requests", p.PutPer1000)
	add("GET requests", float64(u.Gets)/1000, "1000 requests", p.GetPer1000)
	add("instance", u.Time.Hours(), "hours", p.InstancePerHour)
	return bill
}
