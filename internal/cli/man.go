package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// man is for packages, which install the pages. SOURCE_DATE_EPOCH sets their date.
func (a *app) man() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a man page for every command",
		Hidden: true,
		Args:   exactly(1, "man takes one DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			header := doc.GenManHeader{Source: "terapush " + buildVersion().Version, Manual: "terapush"}
			if err := doc.GenManTree(cmd.Root(), &header, args[0]); err != nil {
				return fmt.Errorf("writing man pages: %w", err)
			}
			return nil
		},
	}
}
