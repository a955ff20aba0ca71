import { BOTH_DIALECTS } from '../both-dialects.ts';

export const statements = [
  ...BOTH_DIALECTS.Migration00000000000012_webhook_secrets,
  `update tenants set revisions = jsonb_set(revisions, '{webhookSecret}', '0')`,
];
