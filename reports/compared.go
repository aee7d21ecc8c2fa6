package reports

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Compared is one side of a comparison: the content of a directory or a file.
type Compared struct {
	// Path is the path that the user gave. Document is "run", "directory of runs", "conformance
	// report", "version matrix" or "campaign".
	Path, Document string
	// Facts describe this side, one fact a line.
	Facts []string

	runs      []RunReport
	scenarios []comparedScenario
	campaign  *Campaign
	// about must be the same on both sides: the backend and the subject of a suite.
	about string
}

// Open reads one side of a comparison: the output directory of a run, a suite or a search, or one
// of the files report.json, conformance.yaml, matrix.json and campaign.json alone.
func Open(path string) (Compared, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Compared{}, fmt.Errorf("compare: %w", err)
	}
	c := Compared{Path: path}
	for _, document := range []struct {
		name string
		read func(*Compared, string) error
	}{
		{CampaignJSON, (*Compared).readCampaign}, {ConformanceFile, (*Compared).readConformance}, {MatrixJSON, (*Compared).readMatrix},
		{JSONFile, (*Compared).readRun},
	} {
		file := path
		switch {
		case info.IsDir():
			file = filepath.Join(path, document.name)
		case filepath.Base(path) != document.name:
			continue
		}
		err := document.read(&c, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return c, err
	}
	if !info.IsDir() {
		return c, fmt.Errorf("compare: %s is no file that can be compared; give %s, %s, %s or %s, or the directory that it is in", path, JSONFile,
			ConformanceFile, MatrixJSON, CampaignJSON)
	}
	c.Document = "directory of runs"
	c.runs, err = FindRuns(path)
	c.Facts = []string{counted(len(c.runs), "run")}
	return c, err
}

func (c *Compared) readRun(file string) error {
	r, err := Read(file)
	c.Document, c.runs = "run", []RunReport{r}
	c.Facts = append([]string{side(r)}, r.Metadata.lines()...)
	return err
}

func (c *Compared) readConformance(file string) error {
	r, err := ReadConformance(file)
	if err != nil {
		return err
	}
	c.Document, c.about = "conformance report", r.Product.Backend+", "+r.Product.Subject
	c.Facts = []string{fmt.Sprintf("%s: %s", r.Result, r.Sentence), c.about}
	if r.Product.From != "" { // servers that ran already may have any versions
		c.Facts = append(c.Facts, r.Product.From+" → "+r.Product.To)
	}
	c.Facts = append(append(c.Facts, "skewproof "+r.Metadata.SkewproofVersion), r.Product.lines()...)
	for _, s := range r.Scenarios {
		c.scenarios = append(c.scenarios, comparedScenario{s.Name, s.Core, s.Extended})
		if !r.Metadata.Strict {
			c.scenarios[len(c.scenarios)-1].extended = ProfileResult{}
		}
	}
	return c.runsBeside(file)
}

func (c *Compared) readMatrix(file string) error {
	m, err := ReadMatrix(file)
	if err != nil {
		return err
	}
	c.Document, c.about = "version matrix", m.Metadata.Backend
	c.Facts = append([]string{fmt.Sprintf("%s: %s, skewproof %s", m.Result, m.Sentence, m.Metadata.SkewproofVersion)}, m.Metadata.lines()...)
	for _, cell := range m.Cells {
		if cell.Subject != subjectNone { // this subject must fail
			name := cell.Scenario + ", " + cell.Subject + ", " + m.Pairs[cell.Pair].String()
			c.scenarios = append(c.scenarios, comparedScenario{name, cell.Core, ProfileResult{}})
		}
	}
	err = c.runsBeside(file)
	c.runs = slices.DeleteFunc(c.runs, func(r RunReport) bool { return r.Metadata.Subject == subjectNone })
	return err
}

// runsBeside reads the runs of a suite, if the given path is its directory and has runs.
func (c *Compared) runsBeside(file string) (err error) {
	if c.Path == file {
		return nil
	}
	if c.runs, err = FindRuns(c.Path); errors.Is(err, errNoRun) {
		return nil
	}
	return err
}

func (c *Compared) readCampaign(file string) error {
	campaign, err := ReadCampaign(file)
	if err != nil {
		return err
	}
	c.Document, c.campaign = "campaign", campaign
	c.Facts = []string{fmt.Sprintf("%s: %s", campaign.Verdict.Outcome, sentence(campaign.Verdict.Sentence)),
		fmt.Sprintf("%s, %s schedules, skewproof %s", campaign.Spec, grouped(int(campaign.Schedules)), campaign.SkewproofVersion)}
	return nil
}

// errNoRun is the error for a directory without any judged run.
var errNoRun = errors.New("holds no judged run")

// FindRuns returns the reports of all judged runs below a directory, in the order of their paths.
// The directory may be that of one run or that of a suite. FindRuns leaves control runs out.
func FindRuns(dir string) ([]RunReport, error) {
	var all []RunReport
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ControlDir && path != dir:
			return filepath.SkipDir
		case entry.IsDir() || entry.Name() != JSONFile:
			return nil
		}
		r, err := Read(path)
		all = append(all, r)
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s %w: there is no %s in it", dir, errNoRun, JSONFile)
	}
	return all, err
}
