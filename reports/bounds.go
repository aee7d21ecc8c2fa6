package reports

// mostRows is how many rows the page shows of a table that grows with the history. report.json has
// all of them.
const mostRows = 200

// omitted are the rows that the page leaves out.
type omitted struct{ Steps, Faults, Effects, Servers int }

// bounded removes from a report the parts for which a page has no room.
func bounded(r RunReport) (RunReport, omitted) {
	var o omitted
	r.Steps, o.Steps = firstRows(r.Steps, mostRows)
	r.Faults, o.Faults = firstRows(r.Faults, mostRows)
	r.Effects, o.Effects = firstRows(r.Effects, mostRows)
	r.Servers, o.Servers = firstRows(r.Servers, mostLanes)
	servers := append([]Server(nil), r.Servers...)
	for n := range servers {
		servers[n].Versions, servers[n].Omitted = firstRows(servers[n].Versions, mostRows/len(servers)+10)
	}
	r.Servers = servers
	return r, o
}

func firstRows[T any](all []T, most int) ([]T, int) {
	if len(all) <= most {
		return all, 0
	}
	return all[:most], len(all) - most
}
