package mysql

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGrants(t *testing.T) {
	name := tableName{"shop_1", "documents"}
	for _, c := range []struct {
		lines string
		want  bool
	}{
		{"GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION", true},
		{"GRANT SELECT, INSERT, UPDATE ON *.* TO 'u'@'%'", true},
		{"GRANT USAGE ON *.* TO `u`@`%`", false},
		{"GRANT INSERT ON `shop_1`.* TO `u`@`%`", true},
		{"GRANT INSERT ON `shop\\_1`.* TO `u`@`%`", true},
		{"GRANT INSERT ON `shop\\_%`.* TO `u`@`%`", true},
		{"GRANT INSERT ON `sh%1`.* TO `u`@`%`", true},
		{"GRANT INSERT ON `shop\\_2`.* TO `u`@`%`", false},
		{"GRANT INSERT ON shop_1.* TO 'u'@'%'", true}, // TiDB
		{"GRANT INSERT ON `shop_1`.`documents` TO `u`@`%`", true},
		{"GRANT SELECT (`a,b`), INSERT (`x`, `y`) ON `shop_1`.`documents` TO `u`@`%`", true},
		{"GRANT SELECT (`a`, `INSERT`) ON `shop_1`.`documents` TO `u`@`%`", false},
		{"GRANT INSERT ON `shop_1`.`other` TO `u`@`%`", false},
		{"GRANT INSERT ON `shop`.* TO `u`@`%`", false},
		{"GRANT PROXY ON ''@'%' TO 'root'@'localhost'", false},
		{"GRANT `r`@`%` TO `u`@`%`", false},
		{"SET DEFAULT ROLE `r` FOR `u`@`%`", false},
		{"GRANT INSERT ON *.* TO `u`@`%`\nREVOKE INSERT ON `shop_1`.* FROM `u`@`%`", false},
		{"GRANT INSERT ON *.* TO `u`@`%`\nREVOKE INSERT ON `shop_2`.* FROM `u`@`%`", true},
		{"GRANT INSERT ON *.* TO `u`@`%`\nREVOKE INSERT ON `shop_1`.* FROM `u`@`%`\nGRANT INSERT ON `shop_1`.`documents` TO `u`@`%`", true},
		{"", false},
		{"GRANT ) ON `", false},
		{"GRANT INSERT ON `shop_1`.* TO u\nGRANT ) ON `", true},
	} {
		assert.Equal(t, c.want, parseGrants(strings.Split(c.lines, "\n")).hold("INSERT", name), c.lines)
	}
	g := parseGrants([]string{"GRANT SUPER, CONNECTION_ADMIN ON *.* TO `u`@`%`", "GRANT `r`@`%` TO `u`@`%`"})
	assert.True(t, g.roles)
	assert.True(t, g.hold("CONNECTION_ADMIN", tableName{}))
	assert.False(t, parseGrants([]string{"GRANT ALL PRIVILEGES ON `shop_1`.* TO `u`@`%`"}).hold("SUPER", tableName{}))
	assert.True(t, parseGrants([]string{"GRANT INSERT ON `a``b`.`c` TO `u`@`%`"}).hold("INSERT", tableName{"a`b", "c"}))
}
