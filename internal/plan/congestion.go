// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"slices"

	"guise/internal/suggest"
)

// CongestionControls are those that the image has, with its default first.
// linux/configs/net.config builds them in.
var CongestionControls = []string{
	"cubic", "reno", "bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla",
	"illinois", "lp", "nv", "scalable", "vegas", "veno", "westwood", "yeah",
}

// CheckCongestionControl refuses a name that the image does not have.
func CheckCongestionControl(name string) error {
	if slices.Contains(CongestionControls, name) {
		return nil
	}
	return fmt.Errorf("unknown congestion control %q; %s", name,
		suggest.Hint(name, CongestionControls))
}
