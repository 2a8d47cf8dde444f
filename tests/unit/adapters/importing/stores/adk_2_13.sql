-- What DatabaseSessionService of google-adk 2.13.0 wrote: two sessions, as `.dump` tells them.
BEGIN TRANSACTION;
CREATE TABLE adk_internal_metadata (
	"key" VARCHAR(128) NOT NULL,
	value VARCHAR(256) NOT NULL,
	PRIMARY KEY ("key")
);
INSERT INTO "adk_internal_metadata" VALUES('schema_version','1');
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL,
	state TEXT NOT NULL,
	update_time DATETIME NOT NULL,
	PRIMARY KEY (app_name)
);
INSERT INTO "app_states" VALUES('desk','{"shop": "north"}','2025-11-26 05:00:00');
CREATE TABLE events (
	id VARCHAR(128) NOT NULL,
	app_name VARCHAR(128) NOT NULL,
	user_id VARCHAR(128) NOT NULL,
	session_id VARCHAR(128) NOT NULL,
	invocation_id VARCHAR(256) NOT NULL,
	timestamp DATETIME NOT NULL,
	event_data TEXT,
	PRIMARY KEY (id, app_name, user_id, session_id),
	FOREIGN KEY(app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('e01','desk','ann','one','i0','2025-11-26 04:50:51.000000','{"content": {"parts": [{"text": "pay 7 and 8"}], "role": "user"}, "invocation_id": "i0", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e01", "timestamp": 1764132651.0}');
INSERT INTO "events" VALUES('e02','desk','ann','one','i0','2025-11-26 04:50:52.000000','{"content": {"parts": [{"text": "Paying."}, {"function_call": {"id": "c", "args": {"order": 7, "amount": 1.5}, "name": "pay"}}, {"function_call": {"id": "c", "args": {"order": 8, "amount": 2}, "name": "pay"}}], "role": "model"}, "invocation_id": "i0", "author": "desk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e02", "timestamp": 1764132652.0}');
INSERT INTO "events" VALUES('e03','desk','ann','one','i0','2025-11-26 04:50:53.000000','{"content": {"parts": [{"function_response": {"id": "c", "name": "pay", "response": {"ok": 7}}}, {"function_response": {"id": "c", "name": "pay", "response": {"ok": 8}}}], "role": "user"}, "invocation_id": "i0", "author": "desk", "actions": {"state_delta": {"paid": 2, "when": "2026-01-02T00:00:00+00:00"}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e03", "timestamp": 1764132653.0}');
INSERT INTO "events" VALUES('e04','desk','ann','one','i0','2025-11-26 04:50:54.000000','{"content": {"parts": [{"text": "Done."}], "role": "model"}, "invocation_id": "i0", "author": "desk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e04", "timestamp": 1764132654.0}');
INSERT INTO "events" VALUES('e05','desk','ann','one','i1','2025-11-26 04:50:55.000000','{"content": {"parts": [{"text": "refund 7"}], "role": "user"}, "invocation_id": "i1", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e05", "timestamp": 1764132655.0}');
INSERT INTO "events" VALUES('e06','desk','ann','one','i1','2025-11-26 04:50:56.000000','{"content": {"parts": [{"function_call": {"id": "r", "args": {"order": 7}, "name": "refund"}}], "role": "model"}, "invocation_id": "i1", "author": "desk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e06", "timestamp": 1764132656.0}');
INSERT INTO "events" VALUES('e07','desk','ann','one','i1','2025-11-26 04:50:57.000000','{"content": {"parts": [{"function_call": {"id": "q", "args": {"originalFunctionCall": {"id": "r", "name": "refund", "args": {"order": 7}}, "toolConfirmation": {"hint": "sure?", "confirmed": false}}, "name": "adk_request_confirmation"}}], "role": "model"}, "invocation_id": "i1", "author": "desk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "long_running_tool_ids": ["q"], "id": "e07", "timestamp": 1764132657.0}');
INSERT INTO "events" VALUES('e08','desk','ann','one','i1','2025-11-26 04:50:58.000000','{"content": {"parts": [{"function_response": {"id": "r", "name": "refund", "response": {"error": "This tool call requires confirmation, please approve or reject."}}}], "role": "user"}, "invocation_id": "i1", "author": "desk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {"r": {"hint": "sure?", "confirmed": false}}}, "node_info": {"path": ""}, "id": "e08", "timestamp": 1764132658.0}');
INSERT INTO "events" VALUES('e09','desk','ann','one','i2','2025-11-26 04:50:59.000000','{"content": {"parts": [{"function_response": {"id": "q", "name": "adk_request_confirmation", "response": {"confirmed": true}}}], "role": "user"}, "invocation_id": "i2", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e09", "timestamp": 1764132659.0}');
INSERT INTO "events" VALUES('e10','desk','ann','one','i2','2025-11-26 04:51:00.000000','{"content": {"parts": [{"function_response": {"id": "r", "name": "refund", "response": {"refunded": 7}}}], "role": "user"}, "invocation_id": "i2", "author": "desk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e10", "timestamp": 1764132660.0}');
INSERT INTO "events" VALUES('e11','desk','ann','one','i2','2025-11-26 04:51:01.000000','{"content": {"parts": [{"text": "Refunded."}], "role": "model"}, "invocation_id": "i2", "author": "desk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e11", "timestamp": 1764132661.0}');
INSERT INTO "events" VALUES('e12','desk','bob','two','i0','2025-11-26 04:51:02.000000','{"content": {"parts": [{"text": "ship 9"}], "role": "user"}, "invocation_id": "i0", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e12", "timestamp": 1764132662.0}');
INSERT INTO "events" VALUES('e13','desk','bob','two','i0','2025-11-26 04:51:03.000000','{"content": {"parts": [{"function_call": {"id": "a", "args": {"order": 9}, "name": "approve"}}], "role": "model"}, "invocation_id": "i0", "author": "desk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "long_running_tool_ids": ["a"], "id": "e13", "timestamp": 1764132663.0}');
INSERT INTO "events" VALUES('e14','desk','bob','two','i1','2025-11-26 04:51:04.000000','{"content": {"parts": [{"function_response": {"id": "a", "name": "approve", "response": {"status": "approved"}}}], "role": "user"}, "invocation_id": "i1", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e14", "timestamp": 1764132664.0}');
INSERT INTO "events" VALUES('e15','desk','bob','two','i1','2025-11-26 04:51:05.000000','{"content": {"parts": [{"function_call": {"id": "s", "args": {"order": 9}, "name": "ship"}}], "role": "model"}, "invocation_id": "i1", "author": "desk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e15", "timestamp": 1764132665.0}');
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL,
	user_id VARCHAR(128) NOT NULL,
	id VARCHAR(128) NOT NULL,
	state TEXT NOT NULL,
	create_time DATETIME NOT NULL,
	update_time DATETIME NOT NULL,
	PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('desk','ann','one','{"limit": 50, "paid": 2, "when": "2026-01-02T00:00:00+00:00"}','2025-11-26 05:00:00','2025-11-26 04:51:01.000000');
INSERT INTO "sessions" VALUES('desk','bob','two','{}','2025-11-26 05:00:00','2025-11-26 04:51:05.000000');
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL,
	user_id VARCHAR(128) NOT NULL,
	state TEXT NOT NULL,
	update_time DATETIME NOT NULL,
	PRIMARY KEY (app_name, user_id)
);
INSERT INTO "user_states" VALUES('desk','ann','{}','2025-11-26 05:00:00');
INSERT INTO "user_states" VALUES('desk','bob','{}','2025-11-26 05:00:00');
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
COMMIT;
