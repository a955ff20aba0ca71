import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { decodeBase64url } from '../shared/base64url.ts';
import type { PublicId, TenantId } from '../shared/ids.ts';
import type { Session } from './session.ts';
import { statusAt } from './session.ts';

const MAC_BYTES = 16;
const FORM = /^([A-Za-z0-9_-]{1,100})\.([A-Za-z0-9_-]{22})$/;

function mac(key: KeyObject, tenantId: TenantId, publicId: PublicId): Buffer {
  const name = `offer page ${tenantId} ${publicId}`;
  return createHmac('sha256', key).update(name).digest().subarray(0, MAC_BYTES);
}

/**
 * Id of the page of an offer or a request. The page contains the link for wallets, but not vice versa: only callers with the page id see
 * the state of the offer, not everyone who saw the QR code. It is computed, not stored.
 */
export function offerPageId(key: KeyObject, tenantId: TenantId, publicId: PublicId): string {
  return `${publicId}.${mac(key, tenantId, publicId).toString('base64url')}`;
}

/** @returns undefined for an invalid page id of this tenant, without a database lookup. */
export function parseOfferPageId(keys: readonly KeyObject[], tenantId: TenantId, pageId: string): PublicId | undefined {
  const [, publicId = '', received = ''] = FORM.exec(pageId) ?? [];
  const bytes = decodeBase64url(received);
  if (bytes?.length !== MAC_BYTES) return undefined;
  const isOurs = keys.some((key) => timingSafeEqual(mac(key, tenantId, publicId as PublicId), bytes));
  return isOurs ? (publicId as PublicId) : undefined;
}

/** State of an offer or a request on its page. It reveals nothing about the holder or the result. */
export type OfferStatus = 'open' | 'used' | 'expired' | 'cancelled' | 'over';

export function offerStatusOf(session: Session, now: Date): OfferStatus {
  const status = statusAt(session, now);
  if (status === 'expired') return 'expired';
  if (status === 'failed') return session.outcome?.failure?.code === 'cancelled' ? 'cancelled' : 'over';
  if (status === 'completed' || session.claimedAt !== null || session.issuedMask !== 0) return 'used';
  return session.request === null ? 'over' : 'open';
}
