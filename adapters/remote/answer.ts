import type { Dispatcher } from 'undici';
import { RemoteError, type RemoteResponse } from '../../application/ports/remote.ts';
import type { MemoryShare } from '../../application/queues/memory-budget.ts';
import { Redirection } from './redirection.ts';

/** Size of an unread body up to which it is drained, so that the connection can be used again. */
const MAX_DRAINED_BYTES = 16 * 1024;

export type Reading = {
  readonly origin: string;
  readonly maxBytes: number;
  /** The caller reads the body of an error response. */
  readonly readsErrors: boolean;
  readonly bytes: MemoryShare;
};

/** Reads the requested part of a response; the connection of any other response is closed. */
export async function readAnswer(
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  reading: Reading,
): Promise<RemoteResponse> {
  // An abandoned body fails with an error that has no other handler.
  body.on('error', () => {});
  // A redirect leads to an address that the guard has not checked. 304 answers a conditional request and leads nowhere.
  if (status >= 300 && status < 400 && status !== 304) {
    body.destroy();
    throw new Redirection(reading.origin, status, headers['location']);
  }
  const contentType = [headers['content-type'] ?? ''].flat()[0] ?? '';
  const announced = Number(headers['content-length'] ?? 0);
  const isRead = status < 400 || reading.readsErrors;
  return {
    status,
    contentType: contentType.replace(/;.*$/s, '').trim().toLowerCase(),
    body: isRead ? await readBody(body, announced, reading) : await leaveUnread(body, announced),
  };
}

async function leaveUnread(body: Dispatcher.ResponseData['body'], announced: number): Promise<Buffer> {
  let length = 0;
  if (announced > MAX_DRAINED_BYTES) body.destroy();
  else {
    for await (const part of body as AsyncIterable<Buffer>) {
      length += part.length;
      // Leaving the loop closes the connection.
      if (length > MAX_DRAINED_BYTES) break;
    }
  }
  return Buffer.alloc(0);
}

/** Stops reading at the first byte beyond the limit, whatever length was announced. */
async function readBody(body: Dispatcher.ResponseData['body'], announced: number, { maxBytes, origin, bytes }: Reading): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = announced > maxBytes ? announced : 0;
  if (length <= maxBytes) {
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.length;
      if (length > maxBytes) break;
      bytes.add(part.length);
    }
  }
  if (length <= maxBytes) return Buffer.concat(parts, length);
  body.destroy();
  throw new RemoteError('too_large', `${origin} answered with more than ${maxBytes} bytes.`);
}
