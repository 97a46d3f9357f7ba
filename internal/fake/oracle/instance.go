package oracle

// instanceViews are those about the user's rights and about the instance, as a new Oracle Database Free has them: rights
// and quotas of a user with the roles CONNECT and RESOURCE and UNLIMITED TABLESPACE.
var instanceViews = map[string]dictionaryView{
	"SESSION_PRIVS": {"PRIVILEGE", func(s *session) (all [][]value) {
		for _, p := range []string{"CREATE SESSION", "CREATE TABLE", "CREATE PROCEDURE", "CREATE SEQUENCE", "UNLIMITED TABLESPACE"} {
			if s.server.denied(p) == nil {
				all = append(all, []value{p})
			}
		}
		return all
	}},
	"ALL_TAB_PRIVS": {"GRANTOR GRANTEE TABLE_SCHEMA TABLE_NAME PRIVILEGE GRANTABLE", func(*session) [][]value { return nil }},
	"USER_USERS": {"USERNAME USER_ID ACCOUNT_STATUS DEFAULT_TABLESPACE TEMPORARY_TABLESPACE", func(s *session) [][]value {
		return [][]value{{s.server.options.User, int64(110), "OPEN", "USERS", "TEMP"}}
	}},
	"USER_TS_QUOTAS":       {"TABLESPACE_NAME BYTES MAX_BYTES BLOCKS MAX_BLOCKS DROPPED", func(*session) [][]value { return nil }},
	"USER_RESOURCE_LIMITS": {"RESOURCE_NAME LIMIT", func(*session) [][]value { return [][]value{{"SESSIONS_PER_USER", "UNLIMITED"}} }},
	"V$RESOURCE_LIMIT": {"RESOURCE_NAME CURRENT_UTILIZATION MAX_UTILIZATION INITIAL_ALLOCATION LIMIT_VALUE CON_ID", func(s *session) [][]value {
		n := int64(len(s.server.sessions))
		return [][]value{
			{"processes", 60 + n, 60 + n, "       300", "       300", int64(0)}, {"sessions", 70 + n, 70 + n, "       472", "       472", int64(0)},
			{"transactions", int64(0), int64(0), "       519", " UNLIMITED", int64(0)},
		}
	}},
	"V$SESSION": {"SID SERIAL# USERNAME SERVER STATUS", func(s *session) (all [][]value) {
		for x := range s.server.sessions {
			all = append(all, []value{int64(x.number), int64(1), s.server.options.User, "DEDICATED", "ACTIVE"})
		}
		return all
	}},
	"V$DATABASE": {"DBID NAME LOG_MODE FORCE_LOGGING CDB", func(*session) [][]value {
		return [][]value{{int64(1), "FREE", "NOARCHIVELOG", "NO", "YES"}}
	}},
	"V$LOG": {"GROUP# THREAD# SEQUENCE# BYTES BLOCKSIZE MEMBERS ARCHIVED STATUS", func(*session) (all [][]value) {
		for i := range int64(3) {
			all = append(all, []value{i + 1, int64(1), i + 1, int64(200 << 20), int64(512), int64(1), "NO", "INACTIVE"})
		}
		return all
	}},
	"DBA_DATA_FILES": {"FILE_NAME FILE_ID TABLESPACE_NAME BYTES MAXBYTES AUTOEXTENSIBLE STATUS", func(*session) [][]value {
		return [][]value{
			{"/opt/oracle/oradata/FREE/FREEPDB1/undotbs01.dbf", int64(11), "UNDOTBS1", int64(100 << 20), int64(34359721984), "YES", "AVAILABLE"},
			{"/opt/oracle/oradata/FREE/FREEPDB1/users01.dbf", int64(12), "USERS", int64(7 << 20), int64(34359721984), "YES", "AVAILABLE"},
		}
	}},
}
