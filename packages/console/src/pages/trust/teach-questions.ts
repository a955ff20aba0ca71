import { ApiFailure, ask, type Caller, send } from '../../api/call.ts';
import { listAt } from '../../parts/json-paths.ts';
import { type Anchor, newAmong } from './anchors.ts';

export type Taught = { readonly id: string; readonly added: number; readonly fault?: string };

export async function teach(caller: Caller, id: string, anchors: readonly Anchor[]): Promise<Taught> {
  const address = `/verifier/config/${encodeURIComponent(id)}`;
  try {
    const answer = await send(caller, 'GET', address);
    const before = listAt(await answer.json(), 'trustAnchors');
    const added = newAmong(before, anchors);
    if (added.length === 0) return { id, added: 0 };
    const tag = answer.headers.get('ETag');
    await ask(caller, 'PATCH', address, {
      body: { trustAnchors: [...before, ...added] },
      headers: tag === null ? {} : { 'If-Match': tag },
    });
    return { id, added: added.length };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return { id, added: 0, fault: error.message };
  }
}
