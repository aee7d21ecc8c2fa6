package reports

import (
	"os/exec"
	"testing"
)

// Jenkins' xUnit plugin refuses a file that does not follow its schema. testdata/junit-10.xsd is
// that of the plugin's repository (github.com/jenkinsci/xunit-plugin, MIT license).
func TestJUnitFollowsTheSchemaOfJenkins(t *testing.T) {
	xmllint, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("there is no xmllint; the Debian package libxml2-utils has it")
	}
	for _, name := range []string{"junit.xml", "upstream-e2e.xml"} { // the golden files of other tests
		if said, err := exec.Command(xmllint, "--noout", "--schema", "testdata/junit-10.xsd", "testdata/"+name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}
