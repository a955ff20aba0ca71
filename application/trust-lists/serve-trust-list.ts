import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Store } from '../ports/store.ts';

export type ServedTrustList = {
  readonly jwt: string;
  readonly etag: string;
  /** Seconds for which it may be cached. */
  readonly maxAgeSeconds: number;
};

const MAX_AGE_SECONDS = 60 * 60;
/** Interval within which the renewal job runs. */
const RETRY_SECONDS = 300;
/** Length of the part of the signature that serves as entity tag, which is unique for each version. */
const ETAG_LENGTH = 43;

/** Serves the current signed version of a trust list. Lists of suspended tenants stay published. */
export class ServeTrustList extends needs({ store: Store, clock: Clock }) {
  /**
   * @throws Failure `not_found`; `unavailable` for an expired list, which must not be relied on any more
   *   (TS 119 602 section 6.3.15).
   */
  async execute(tenantId: TenantId, id: string): Promise<ServedTrustList> {
    const { store, clock } = this.ports;
    const published = await store.read(tenantId).trustList(id);
    if (published === undefined) throw new Failure('not_found', 'unknown address');
    const { jwt, nextUpdate } = published;
    const remainingSeconds = Math.floor((nextUpdate.getTime() - clock.now().getTime()) / 1000);
    if (remainingSeconds <= 0) {
      const message = 'the list has expired and was not signed again yet';
      throw new Failure('unavailable', { message, retryAfterSeconds: RETRY_SECONDS });
    }
    const signature = jwt.slice(jwt.lastIndexOf('.') + 1);
    return { jwt, etag: `"${signature.slice(0, ETAG_LENGTH)}"`, maxAgeSeconds: Math.min(MAX_AGE_SECONDS, remainingSeconds) };
  }
}
