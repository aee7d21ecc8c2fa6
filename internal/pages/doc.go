// Package pages opens every kind of page that skewproof writes in a headless Chromium. It has tests
// only. They look at each page at two widths, light and dark, with and without scripts: the page
// must not complain, ask for anything, or hide anything, and axe-core must find nothing that a
// reader with a disability would stumble over.
package pages
