package push

// PollInterval is for tests, which have no time for it.
var PollInterval = &pollInterval
