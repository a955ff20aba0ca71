/** Reasons of a failed delivery. `refused_address`: the outbound guard blocked the call. `busy`: too many calls were under way. */
export const WEBHOOK_FAULTS = ['refused_address', 'timeout', 'too_large', 'unreachable', 'busy', 'bad_status', 'not_json'] as const;
export type WebhookFault = (typeof WEBHOOK_FAULTS)[number];
