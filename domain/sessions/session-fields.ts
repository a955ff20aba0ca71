import type { JsonObject } from '../shared/json.ts';
import type { Session } from './session.ts';

/**
 * The properties by which every webhook body names its session: `session`, its id, and `reference`, if the backend gave one.
 * The reference is missing once the request of the session was erased.
 */
export function sessionFields({ id, request }: Pick<Session, 'id' | 'request'>): JsonObject {
  const reference = request?.offerRequest['reference'];
  return { session: id, ...(typeof reference === 'string' && { reference }) };
}
