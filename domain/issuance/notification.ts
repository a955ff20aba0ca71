import { Failure } from '../shared/failure.ts';
import { type JsonObject, parseJsonObject } from '../shared/json.ts';
import { decodeUtf8 } from '../shared/utf8.ts';

/** OpenID4VCI 1.0 section 11.1. */
export const NOTIFICATION_EVENTS = ['credential_accepted', 'credential_failure', 'credential_deleted'] as const;
export type NotificationEvent = (typeof NOTIFICATION_EVENTS)[number];

/** A notification of a wallet about issued credentials. */
export type Notification = {
  /** The `notification_id`. */
  readonly id: string;
  readonly event: NotificationEvent;
  readonly eventDescription?: string;
  readonly credentialConfigurationId: string;
  /** ISO 8601. */
  readonly at: string;
};

/** Limit of the notifications that are stored per session. */
const MAX_NOTIFICATIONS = 100;
const MAX_ID_LENGTH = 200;
const MAX_DESCRIPTION_LENGTH = 1000;
/** OpenID4VCI 1.0 section 11.1 refers to the characters of RFC 6749 section 5.2. */
const DESCRIPTION = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;

const invalidNotificationError = (message: string) => new Failure('invalid_notification_request', message);

/** @throws Failure `invalid_notification_request`. */
export function parseNotification(contentType: string | undefined, bytes: Buffer): Pick<Notification, 'id' | 'event' | 'eventDescription'> {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  const body = type === 'application/json' ? parseJsonObject(decodeUtf8(bytes) ?? '') : undefined;
  if (body === undefined) throw invalidNotificationError('the body must be one JSON object, sent as application/json');
  const { notification_id: id, event, event_description: description } = body;
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID_LENGTH) throw invalidNotificationError('notification_id is missing');
  const validEvent = NOTIFICATION_EVENTS.find((name) => name === event);
  if (validEvent === undefined) throw invalidNotificationError(`event is one of ${NOTIFICATION_EVENTS.join(', ')}`);
  if (description === undefined) return { id, event: validEvent };
  const isPlain = typeof description === 'string' && description.length <= MAX_DESCRIPTION_LENGTH && DESCRIPTION.test(description);
  if (!isPlain) throw invalidNotificationError('event_description is printable ASCII without quotes and backslashes');
  return { id, event: validEvent, eventDescription: description };
}

/** @returns undefined for a repeated notification (OpenID4VCI 1.0 section 11: idempotent), and above the limit. */
export function appendNotification(validEvent: readonly JsonObject[], notification: Notification): readonly JsonObject[] | undefined {
  const { id, event } = notification;
  if (validEvent.some((entry) => entry['id'] === id && entry['event'] === event)) return undefined;
  if (validEvent.length >= MAX_NOTIFICATIONS) return undefined;
  return [...validEvent, notification as unknown as JsonObject];
}
