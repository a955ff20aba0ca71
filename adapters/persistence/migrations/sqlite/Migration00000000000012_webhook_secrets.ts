import { BOTH_DIALECTS, inSqlite } from '../both-dialects.ts';

export const statements = [
  ...BOTH_DIALECTS.Migration00000000000012_webhook_secrets.map(inSqlite),
  `update tenants set revisions = json_set(revisions, '$.webhookSecret', 0)`,
];
