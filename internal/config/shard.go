package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Shard is the part of a run that one process of several sends. The zero value is the whole run.
type Shard struct {
	Index int64 `json:"index"` // from 0
	Count int64 `json:"count"` // 2 or more

	auto string // what the platform numbers, until Resolve
}

// Whole reports whether there is no other process.
func (s Shard) Whole() bool { return s.Count == 0 }

// maxShards bounds the processes of a run.
const maxShards = 10_000

// Set implements pflag.Value.
func (s *Shard) Set(text string) error {
	if text == "" {
		*s = Shard{}
		return nil
	}
	index, count, counted := strings.Cut(text, "/")
	made := Shard{}
	if index == "auto" {
		made.auto, made.Count = text, 2
	} else if n, err := strconv.ParseInt(index, 10, 32); err == nil {
		made.Index = n
	} else {
		counted = false
	}
	if counted {
		var err error
		if made.Count, err = strconv.ParseInt(count, 10, 32); err != nil {
			made.Count = 0
		}
	}
	if made.auto == "" && (!counted || made.Index < 0 || made.Index >= made.Count) || made.Count < 1 || made.Count > maxShards {
		return fmt.Errorf("%q is not a shard: write 0/8 to 7/8 for eight processes, of %d at most; auto where the platform numbers them; "+
			"auto/8 where it does not count them", text, maxShards)
	}
	if made.auto == "" && made.Count == 1 {
		made = Shard{}
	}
	*s = made
	return nil
}

// String implements pflag.Value; "" is the whole run.
func (s *Shard) String() string {
	switch {
	case s.auto != "":
		return s.auto
	case s.Count == 0:
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// Type implements pflag.Value.
func (*Shard) Type() string { return "I/N" }

// platforms number the processes of an array of jobs: Kubernetes' Indexed Job, AWS Batch, Cloud Run and Slurm. Slurm's
// arrays may begin at any number.
var platforms = []struct{ index, count, first string }{
	{index: "JOB_COMPLETION_INDEX"},
	{index: "AWS_BATCH_JOB_ARRAY_INDEX", count: "AWS_BATCH_JOB_ARRAY_SIZE"},
	{index: "CLOUD_RUN_TASK_INDEX", count: "CLOUD_RUN_TASK_COUNT"},
	{index: "SLURM_ARRAY_TASK_ID", count: "SLURM_ARRAY_TASK_COUNT", first: "SLURM_ARRAY_TASK_MIN"},
}

// Resolve replaces auto by what the platform says of this process.
func (s *Shard) Resolve(env func(string) (string, bool)) error {
	if s.auto == "" {
		return nil
	}
	_, count, _ := strings.Cut(s.auto, "/")
	var names []string
	for _, p := range platforms {
		names = append(names, p.index)
		text, _ := env(p.index)
		if text == "" {
			continue
		}
		if count == "" && p.count != "" {
			count, _ = env(p.count)
		}
		if count == "" {
			return fmt.Errorf("--shard auto: %s is %s, but the platform does not count the processes: write --shard auto/N", p.index, text)
		}
		if first, _ := env(p.first); first != "" {
			text = minus(text, first)
		}
		if err := s.Set(text + "/" + count); err != nil {
			return fmt.Errorf("--shard auto, by %s: %w", p.index, err)
		}
		return nil
	}
	return fmt.Errorf("--shard auto: none of %s is set", strings.Join(names, ", "))
}

// minus subtracts numbers; what is none stays as it is.
func minus(text, first string) string {
	n, err := strconv.ParseInt(text, 10, 32)
	m, problem := strconv.ParseInt(first, 10, 32)
	if err != nil || problem != nil {
		return text
	}
	return strconv.FormatInt(n-m, 10)
}
