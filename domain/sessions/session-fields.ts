import type { JsonObject } from '../shared/json.ts';
import type { Session } from './session.ts';

/**
 * Properties that identify the session in every webhook body: `session`, its id, and `reference`, if the backend set one. The reference is
 * missing once the request of the session was erased.
 */
export function sessionFields({ id, request }: Pick<Session, 'id' | 'request'>): JsonObject {
  const reference = request?.offerRequest['reference'];
  return { session: id, ...(typeof reference === 'string' && { reference }) };
}
