export type { components, operations, paths, webhooks } from './api.d.ts';
export type {
  Answer,
  CallOptions,
  Entry,
  ListPath,
  Method,
  Operation,
  Options,
  PathOf,
  Schemas,
} from './operations.ts';
export {
  type Delivery,
  type VerifyOptions,
  verifyWebhook,
  type WebhookAnswer,
  type WebhookBody,
  type WebhookHeaders,
  type WebhookName,
  WebhookVerificationError,
} from './verify-webhook.ts';
export { type Answered, VidimusClient, type VidimusClientOptions } from './vidimus-client.ts';
export { type FieldFault, VidimusError, type VidimusErrorCode } from './vidimus-error.ts';
export type { Session, SessionStatus, WaitOptions } from './wait-for-session.ts';
