import { describeSessionRemoval } from '../../domain/audit/describe-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { record } from '../attempt.ts';
import type { TenantCaller } from '../caller.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { readVisibleSession } from './visibility.ts';

/** Removes a session with all it holds; a wallet finds it gone. */
export class DeleteSession extends needs(WORLD) {
  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: SessionId): Promise<void> {
    await readVisibleSession(this.ports.store, caller, id);
    const audit = { by: caller, change: describeSessionRemoval(id) };
    const removed = await record(this.ports, caller.tenantId, { removes: id, audit });
    if (!removed.done) throw new Failure('not_found', 'there is no such session');
  }
}
