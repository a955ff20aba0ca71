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
 * Names the page of an offer or a request. It leads to the link that wallets get, and that does not lead to the page: what
 * became of an offer is told to those who were given its page, and not to everybody who saw a QR code. Nothing is stored for it.
 */
export function offerPageId(key: KeyObject, tenantId: TenantId, publicId: PublicId): string {
  return `${publicId}.${mac(key, tenantId, publicId).toString('base64url')}`;
}

/** @returns undefined for what is no page of this tenant; nothing has to be looked up for that. */
export function parseOfferPageId(keys: readonly KeyObject[], tenantId: TenantId, pageId: string): PublicId | undefined {
  const [, publicId = '', received = ''] = FORM.exec(pageId) ?? [];
  const bytes = decodeBase64url(received);
  if (bytes?.length !== MAC_BYTES) return undefined;
  const isOurs = keys.some((key) => timingSafeEqual(mac(key, tenantId, publicId as PublicId), bytes));
  return isOurs ? (publicId as PublicId) : undefined;
}

/** What a page says of an offer or a request. Nothing of the person, nor of how it went. */
export type OfferStanding = 'open' | 'used' | 'expired' | 'cancelled' | 'over';

export function standingOf(session: Session, now: Date): OfferStanding {
  const status = statusAt(session, now);
  if (status === 'expired') return 'expired';
  if (status === 'failed') return session.outcome?.failure?.code === 'cancelled' ? 'cancelled' : 'over';
  if (status === 'completed' || session.claimedAt !== null || session.issuedMask !== 0) return 'used';
  return session.request === null ? 'over' : 'open';
}
