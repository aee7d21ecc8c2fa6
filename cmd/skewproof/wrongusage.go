package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/binaries"
)

// flagError says what is wrong with a flag in words for people rather than for programmers, and
// where to read on.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid))
	}
	return usage("%w; '%s --help' shows the flags", err, cmd.CommandPath())
}

// wanted is what a flag takes, or what it has to say itself.
func wanted(invalid *pflag.InvalidValueError) string {
	switch invalid.GetFlag().Value.Type() {
	case "int":
		return "want a whole number"
	case "uint64":
		return "want a whole number, 0 or more"
	case "float64":
		return "want a number"
	case "duration":
		return "want a time such as 30s or 5m"
	case "bool":
		return "want true or false"
	}
	said := strings.TrimPrefix(invalid.Unwrap().Error(), binaries.ErrBadRef.Error()+": ")
	return strings.TrimPrefix(said, strconv.Quote(invalid.GetValue())+": ")
}

// unknownCommand is cobra's error of that name, with the commands that may have been meant.
func unknownCommand(root *cobra.Command, err error) error {
	problem, _, _ := strings.Cut(err.Error(), " for ")
	word, unquoted := strconv.Unquote(strings.TrimPrefix(problem, "unknown command "))
	if likely := root.SuggestionsFor(word); unquoted == nil && len(likely) > 0 {
		problem += ": did you mean " + strings.Join(likely, " or ") + "?"
	} else {
		problem += ":"
	}
	return fmt.Errorf("%s '%s --help' lists the commands", problem, root.CommandPath())
}

// strictHelp makes 'help' about a command that does not exist wrong usage.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil { // cobra has made it
		panic(err)
	}
	help.Args = func(_ *cobra.Command, words []string) error {
		if _, _, err := root.Find(words); err != nil {
			return &exitError{exitUsage, unknownCommand(root, err)}
		}
		return nil
	}
}
