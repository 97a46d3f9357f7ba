package oracle

import "github.com/terapush/terapush/pkg/loader"

// Numbers of ORA errors that more than the table knows.
const (
	codeUnique        = 1
	codeBusy          = 54    // resource busy and NOWAIT
	codeWaitedForLock = 30006 // the same, and WAIT has ended
	codeNoColumn      = 904   // invalid identifier
	codeNoTable       = 942   // table or view does not exist, or may not be seen
	codeNoParameter   = 2248  // invalid option for ALTER SESSION: an older server
	codeUnsupported   = 2097  // parameter cannot be modified because specified value is invalid
	codeDirectPath    = 38910
	codeReadAfterLoad = 12838
)

// judgement is what an ORA error means for a retry, and what to do about it where the server's words are not enough.
type judgement struct {
	class       loader.Class
	retry, dead bool
	hint        string
}

// judge sorts ORA errors. Numbers that are not here are of the statement, and not worth a retry.
func judge(number int) judgement {
	const (
		full    = "make room, then resume the run: enlarge the tablespace or the user's quota"
		account = "check user and password: TERAPUSH_PASSWORD is read"
		wide    = "compare the types of the table's columns with those of --dry-run"
		extent  = "values beyond 4000 bytes (RAW: 2000) need MAX_STRING_SIZE = EXTENDED: lower --payload-bytes"
	)
	switch number {
	// The connection is gone. 1012 not logged on; 22 … 45 session ended or marked for it; 602, 603 the server process has
	// died, 12805 a parallel one; 1041, 3122, 28511, 56600 and others the client library calls so; 2396, 2399 idle and connect
	// time; 3113 … 3135 end of file, lost contact; 12xxx the network; 25408 … TAF and Application Continuity.
	case 22, 28, 31, 45, 602, 603, 609, 1012, 1041, 2396, 2399, 3106, 3113, 3114, 3122, 3135, 3136, 12152, 12153, 12157, 12170,
		12537, 12543, 12545, 12547, 12560, 12564, 12570, 12571, 12583, 12592, 12805, 25401, 25403, 25408, 25409, 27146, 28511,
		28547, 41412, 56600:
		return judgement{class: loader.ClassConnection, retry: true, dead: true}
	case 12541:
		return judgement{class: loader.ClassConnection, retry: true, dead: true, hint: "is the listener up, and is this its port?"}

	// Not yet, or not any more. 12514, 12505, 12521, 12528: the listener does not know the service (yet), or it is blocked.
	case 1033, 1034, 1035, 1089, 1090, 1092, 1109, 12526, 12527, 12528, 27101, 44787:
		return judgement{class: loader.ClassShutdown, retry: true, dead: true, hint: "the instance is starting, stopping or restricted"}
	case 12514, 12504:
		return judgement{class: loader.ClassShutdown, retry: true, dead: true, hint: "check the service behind the host with lsnrctl " +
			"services: an SID is written ?" + paramSID + "=, and a database that is starting up registers late"}
	case 12505:
		return judgement{class: loader.ClassShutdown, retry: true, dead: true, hint: "the listener knows no such SID: name the service " +
			"behind the host instead"}
	case 16456, 16000:
		return judgement{class: loader.ClassShutdown, retry: true, dead: true, hint: "this database is a standby: name the primary"}

	// Too much at a time. 18, 20 sessions, processes; 12516 … 12520 no handler; 2391 SESSIONS_PER_USER; 4031 shared pool.
	case 18, 20, 12516, 12518, 12519, 12520, 2391, 54523:
		return judgement{class: loader.ClassThrottled, retry: true, dead: true, hint: "lower --workers, or raise PROCESSES and SESSIONS"}
	case 4030, 4031, 4036, 62140, 62144:
		return judgement{class: loader.ClassThrottled, retry: true}
	case 56735, 56720:
		return judgement{class: loader.ClassThrottled, retry: true, hint: "the resource manager holds the session back"}

	// Locks. 54 and 30006 resource busy; 60 deadlock; 8177 serialization; 1555 snapshot too old; 4021 … library locks;
	// 14403, 4068 the table was altered meanwhile.
	case 54, 60, 1555, 1591, 2049, 4020, 4021, 4061, 4065, 4068, 8103, 8177, 14403, 30006:
		return judgement{class: loader.ClassLock, retry: true}
	case 40, 1013:
		return judgement{class: loader.ClassTimeout, retry: true}

	// The network's own bounds. 3156, 12161: that of the call, which godror sets to the context's in whole milliseconds, cut
	// off, so that it may fire before the context does (DPI-1067).
	case 3156, 12161, 12535, 12606, 12608, 12609:
		return judgement{class: loader.ClassTimeout, retry: true, dead: true}

	case 1536, 1652, 1653, 1654, 1658, 1659, 1683, 1688, 1691, 1692, 1631, 1632, 30036, 30041:
		return judgement{class: loader.ClassDiskFull, hint: full}
	case 257, 16014, 16038, 19502, 19504, 19809, 19815:
		return judgement{class: loader.ClassDiskFull, retry: true, hint: "the archived redo has no room left: free some on the server"}

	case codeUnique:
		return judgement{class: loader.ClassConstraint, hint: "rows with these keys are there already: use another --first-key, or --append"}
	case 1400, 1407, 2290, 2291, 2292, 14400, 14402, 14401, 2437, 1452:
		return judgement{class: loader.ClassConstraint}

	case 40441, 40597, 40587:
		return judgement{class: loader.ClassData, hint: "a value is no JSON"}
	case 1438, 12899, 1722, 1830, 1839, 1840, 1841, 1843, 1847, 1858, 1861, 932, 1401, 1426, 1460, 1465, 1483, 6502, 12704, 29275, 30653:
		return judgement{class: loader.ClassData, hint: wide}
	case 910, 1461, 1489, 1704, 972:
		return judgement{class: loader.ClassTooLarge, hint: extent}
	case 3146:
		return judgement{class: loader.ClassTooLarge, hint: "lower --batch-rows"}
	case 1562, 1628:
		return judgement{class: loader.ClassTooLarge, hint: "lower --batch-bytes: the undo segment does not take the transaction"}

	case 1017, 1004, 1005:
		return judgement{class: loader.ClassPermission, dead: true, hint: account}
	case 28000:
		return judgement{class: loader.ClassPermission, dead: true, hint: "the account is locked: ALTER USER … ACCOUNT UNLOCK"}
	case 28001, 28002:
		return judgement{class: loader.ClassPermission, dead: true, hint: "the password has expired: change it with ALTER USER"}
	case 1045:
		return judgement{class: loader.ClassPermission, dead: true, hint: "GRANT CREATE SESSION to the user"}
	case 1031, 1749, 1950, 1720, 27486, 41900:
		return judgement{class: loader.ClassPermission, hint: "ask an administrator for the privilege; a table wants CREATE TABLE and a " +
			"quota on its tablespace"}
	case 12506, 12529:
		return judgement{class: loader.ClassPermission, dead: true, hint: "the listener refuses this client's address"}
	case 28759, 28860, 29024, 28864, 28868, 29106, 28365, 28374:
		return judgement{class: loader.ClassPermission, dead: true, hint: "check the wallet and the server's certificate"}

	case codeNoTable, 4043, 1918, 1435, 959, 2149, 980:
		return judgement{class: loader.ClassMissing, hint: "there is no such thing, or this user may not see it"}
	case codeNoColumn:
		return judgement{class: loader.ClassMissing, hint: wide}
	case codeNoParameter, codeUnsupported:
		return judgement{class: loader.ClassMissing, hint: "check the names and values of --set"}

	case codeDirectPath:
		return judgement{class: loader.ClassOther, hint: "use a binary of make build-godror, or another method"}
	case codeReadAfterLoad:
		return judgement{class: loader.ClassOther, hint: "direct path wants a commit before the table is used again"}
	case 600, 7445:
		return judgement{class: loader.ClassOther, retry: true, dead: true, hint: "an internal error of the server: see its alert log"}
	}
	return judgement{class: loader.ClassOther}
}
