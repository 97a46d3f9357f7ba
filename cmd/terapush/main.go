// Command terapush pushes terabytes into databases and proves that every row arrived exactly once.
package main

import "github.com/terapush/terapush/pkg/command"

func main() { command.Main() }
