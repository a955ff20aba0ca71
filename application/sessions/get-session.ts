import { createHash, timingSafeEqual } from 'node:crypto';
import type { Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { UnconfirmedCaller } from '../caller.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import { readConfirmedSession } from './visibility.ts';

type Ports = { readonly store: Store; readonly clock: Clock };

/** One session as it is now. */
export class GetSession {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @param responseCode what the browser brought back (OpenID4VP 1.0 section 13.3): proof that the person at the
   *   browser is the one whose wallet answered.
   * @throws Failure `not_found`, or `forbidden` for a response code that is not this session's.
   */
  async execute(
    caller: UnconfirmedCaller,
    id: SessionId,
    responseCode?: string,
  ): Promise<{ readonly session: Session; readonly tenant: Tenant; readonly now: Date }> {
    const { store, clock } = this.#ports;
    const { session, caller: known } = await readConfirmedSession(store, caller, id);
    const hash = session.outcome?.responseCodeHash;
    if (responseCode !== undefined && hash !== undefined && !isCodeOf(hash, responseCode)) {
      throw new Failure('forbidden', 'this response_code does not belong to the session');
    }
    return { session, tenant: await known.view.tenant(), now: clock.now() };
  }
}

function isCodeOf(hash: string, responseCode: string): boolean {
  const expected = Buffer.from(hash, 'base64url');
  const given = createHash('sha256').update(responseCode).digest();
  return expected.length === given.length && timingSafeEqual(expected, given);
}
