import { describeSessionRemoval } from '../../domain/audit/describe-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { record, type World } from '../attempt.ts';
import type { TenantCaller } from '../caller.ts';
import { readVisibleSession } from './visibility.ts';

/** Removes a session with all it holds; a wallet finds it gone. */
export class DeleteSession {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: SessionId): Promise<void> {
    await readVisibleSession(this.#world.store, caller, id);
    const audit = { by: caller, change: describeSessionRemoval(id) };
    const removed = await record(this.#world, caller.tenantId, { removes: id, audit });
    if (!removed.done) throw new Failure('not_found', 'there is no such session');
  }
}
