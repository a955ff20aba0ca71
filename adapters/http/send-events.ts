import type { Response } from 'express';
import type { StreamItem } from './route.ts';

/** Server-sent events (WHATWG HTML section 9.2). Ends when the source ends or the peer leaves. */
export async function sendEvents(response: Response, events: AsyncIterable<StreamItem>): Promise<void> {
  response.setHeader('Content-Type', 'text/event-stream');
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('X-Accel-Buffering', 'no');
  response.flushHeaders();
  try {
    for await (const item of events) {
      if (response.destroyed) break;
      response.write(format(item));
    }
  } finally {
    response.end();
  }
}

function format(item: StreamItem): string {
  if (item === 'heartbeat') return ': keep-alive\n\n';
  const id = item.id === undefined ? '' : `id: ${item.id}\n`;
  return `${id}data: ${JSON.stringify(item.data)}\n\n`;
}
