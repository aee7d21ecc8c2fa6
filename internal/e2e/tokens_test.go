package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/skewproof/skewproof/internal/workload"
)

// tokensAreNotReviewed checks that the sidecars create no object with a token, and that they
// nevertheless learn the user of the ServiceAccount's forwarded requests.
func tokensAreNotReviewed(t *testing.T, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "*-audit.jsonl"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("the run has no audit logs in %s (%v)", dir, err)
	}
	tokenReviews, learnt := 0, 0
	for _, name := range logs {
		log, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		lines := bufio.NewReader(log)
		for {
			line, err := lines.ReadBytes('\n')
			var e auditv1.Event
			if err != nil {
				break // the last line of a killed server may be incomplete
			}
			if !bytes.Contains(line, []byte(`"skewproof-proxy"`)) || json.Unmarshal(line, &e) != nil {
				continue
			}
			if e.UserAgent != "skewproof-proxy" || e.ObjectRef == nil || e.Stage != auditv1.StageResponseComplete {
				continue
			}
			switch {
			case e.ObjectRef.Resource == "tokenreviews":
				tokenReviews++
			case e.ObjectRef.Resource == "selfsubjectreviews" && e.User.Username == workload.ServiceAccountUser:
				learnt++
			}
		}
	}
	if tokenReviews > 0 || learnt == 0 {
		t.Errorf("the sidecars created %d TokenReviews, and learned %d times by a SelfSubjectReview whose token it is; want none, and some",
			tokenReviews, learnt)
	}
}
