import { z } from 'zod';
import { describeRevocation } from '../../domain/audit/describe-change.ts';
import { assertMayUse } from '../../domain/clients/client.ts';
import { SESSION_STATUSES } from '../../domain/sessions/session.ts';
import type { SessionChange } from '../../domain/sessions/session-change.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { entryFault } from '../../domain/status-lists/bits.ts';
import type { IssuedBatch, StatusChange, StatusList } from '../../domain/status-lists/status-list.ts';
import { attemptFor } from '../attempt.ts';
import type { RememberedCaller, TenantCaller } from '../caller.ts';
import { type Known, WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { StatusAllocator } from './status-allocator.ts';

export const Revocation = z
  .object({
    sessionId: z.string().min(1).max(128),
    status: z
      .literal([0, 1, 2], '0 valid, 1 revoked or 2 suspended')
      .describe('0 valid, 1 revoked, 2 suspended. Revoked is final; valid and suspended change freely'),
    credentialConfigurationId: z.string().min(1).max(128).optional(),
  })
  .meta({ id: 'Revocation' });
export type Revocation = z.infer<typeof Revocation>;

const VALID = 0;
const REVOKED = 1;
/** Issuances of one session that may come in between. */
const ATTEMPTS = 10;

/** Changes the status of all credentials of a session, or of those of one configuration, in one transaction. */
export class RevokeSession extends needs({ ...WORLD, statusAllocator: StatusAllocator }) {
  /**
   * @returns how many credentials have the new status.
   * @throws Failure `not_found` for an unknown session, `conflict` when it issued nothing that has a status or what was revoked,
   *   `invalid_input` when a list cannot express the status.
   */
  async execute(caller: RememberedCaller, revocation: Revocation): Promise<number> {
    for (let left = ATTEMPTS; ; left--) {
      try {
        return await attemptFor(this.ports, caller, (known, present) =>
          this.#revoke(known, present, revocation),
        );
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== 'conflict' || error.cause !== ISSUING || left === 0)
          throw error;
      }
    }
  }

  async #revoke(known: Known, caller: TenantCaller, revocation: Revocation): Promise<number> {
    const sessionId = revocation.sessionId as SessionId;
    // What was issued is kept longer than the session, so a credential can be revoked as long as it lives.
    const { batches: all, configurationIds: offered = [] } = await known.confirm(
      known.reads.issued(sessionId),
    );
    if (all.length === 0) await this.#assertKnown(known, caller, sessionId);
    // Those of which nothing was issued yet are barred, too.
    assertVisible(caller, [...offered, ...all.map((batch) => batch.credentialConfigurationId)]);
    const wanted = revocation.credentialConfigurationId;
    const batches = all.filter((batch) => wanted === undefined || batch.credentialConfigurationId === wanted);
    const changes = await this.#changesOf(caller, batches, revocation.status);
    if (changes.length === 0) {
      throw new Failure(
        'conflict',
        wanted === undefined
          ? 'this session issued no credential that has a status'
          : `this session issued no credential of ${wanted} that has a status`,
      );
    }
    await assertChangeable(known, changes, revocation.status);
    // A wallet whose credential was revoked must not fetch a new one with the access token that it still holds.
    const bar: SessionChange = {
      id: sessionId,
      anytime: SESSION_STATUSES,
      issuedExactly: all.length,
      bars: { mask: maskOf(offered, wanted), barred: revocation.status !== VALID },
    };
    const told = describeRevocation({ sessionId, credentialConfigurationId: wanted }, changes);
    const change = { session: bar, statuses: changes, audit: { by: caller, change: told } };
    await known.commit(change, { session: issuing, statuses: stays });
    return changes.length;
  }

  async #changesOf(
    caller: TenantCaller,
    batches: readonly IssuedBatch[],
    status: number,
  ): Promise<readonly StatusChange[]> {
    const changes: StatusChange[] = [];
    for (const { statusListId, firstCounter, count } of batches) {
      if (statusListId === null || firstCounter === null) continue;
      const list = await this.#list(caller, statusListId);
      // Token Status List section 7.1: one bit knows valid and invalid only.
      if (entryFault(list.bits, list.capacity, { index: 0, status }) !== undefined) {
        throw invalidInput(
          'status',
          `the status list of this credential has ${list.bits} bit; for credentials issued later, set bits to 2 by PUT /status-list-config`,
        );
      }
      for (const index of this.ports.statusAllocator.indicesOf(caller.tenantId, list, firstCounter, count)) {
        changes.push({ listId: list.id, index, status });
      }
    }
    return changes;
  }

  /** @throws Failure `not_found` unless there is such a session that the caller may know of. */
  async #assertKnown(known: Known, caller: TenantCaller, id: SessionId): Promise<void> {
    const session = (await known.reads.session(id))?.session;
    if (session?.kind !== 'issuance') throw unknown();
    assertVisible(caller, session.configurationIds);
  }

  async #list(caller: TenantCaller, id: string): Promise<StatusList> {
    const list = (await caller.configured.statusLists()).find((candidate) => candidate.id === id);
    if (list === undefined)
      throw new Failure('conflict', 'the status list of this credential does not exist any more');
    return list;
  }
}

/**
 * What is revoked stays so; the store holds who revokes at the same moment against it, too.
 * @throws Failure `conflict`.
 */
async function assertChangeable(
  known: Known,
  changes: readonly StatusChange[],
  status: number,
): Promise<void> {
  if (status === REVOKED) return;
  for (const listId of new Set(changes.map((change) => change.listId))) {
    const indices = changes.filter((change) => change.listId === listId).map(({ index }) => index);
    if ((await known.reads.statusesAt(listId, indices)).includes(REVOKED)) throw stays();
  }
}

/** The bits of the configurations concerned: of one, or of all that the session offers. */
function maskOf(configurationIds: readonly string[], wanted: string | undefined): number {
  if (wanted === undefined) return 2 ** configurationIds.length - 1;
  const position = configurationIds.indexOf(wanted);
  return position < 0 ? 0 : 2 ** position;
}

/** Marks the failure of an attempt that met an issuance at the same moment. */
const ISSUING = Symbol('issuing');

function issuing(): Failure {
  const message = 'the session is issuing credentials at this moment; try again';
  return new Failure('conflict', message, { cause: ISSUING });
}

function stays(): Failure {
  return new Failure('conflict', 'a credential that was revoked stays so; issue another one');
}

function unknown(): Failure {
  return new Failure('not_found', 'there is no such session');
}

/** A restricted client does not learn of sessions beyond its configurations. */
function assertVisible(caller: TenantCaller, configurationIds: readonly string[]): void {
  try {
    assertMayUse(caller.allowedIssuanceConfigs, configurationIds);
  } catch {
    throw unknown();
  }
}
