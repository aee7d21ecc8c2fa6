// Package made makes pages as long as people get them, from runs in the simulator, and holds them
// to golden files. It has tests only. internal/pages opens these files in a browser, which takes
// minutes. It does not depend on the judge, so it need not do so after a change that leaves the
// pages as they are.
package made
