import type { TrustList } from './lote.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

/** Of a name, an address, a type or a status. */
const MAX_TEXT = 2_000;
/** In base64; chains of them are no certificate. */
const MAX_CERTIFICATE = 20_000;
/** Of all services of a list together: each is parsed by whoever relies on it. */
export const MAX_CERTIFICATES = 5_000;

/** What was read of a list is kept for long, so nothing in it may be of any size. @throws TrustListRefusal `malformed`. */
export function withinBounds(list: TrustList): TrustList {
  const services = list.entities.flatMap((entity) => entity.services);
  const certificates = services.flatMap((service) => service.certificates);
  if (certificates.length > MAX_CERTIFICATES)
    throw new TrustListRefusal('malformed', 'too many certificates');
  const pointers = list.pointers ?? [];
  const long = [...certificates, ...pointers.flatMap(({ signers }) => signers)];
  const states = services.flatMap((service) => [service, ...(service.history ?? [])]);
  const short = [
    list.territory,
    ...list.entities.flatMap(({ name, country }) => [name, country]),
    ...states.flatMap(({ type, status }) => [type, status]),
    ...pointers.map(({ territory }) => territory),
  ];
  const isLong = (text: string | undefined) => text !== undefined && text.length > MAX_TEXT;
  if (short.some(isLong) || long.some((text) => text.length > MAX_CERTIFICATE)) {
    throw new TrustListRefusal('malformed', 'a text is too long');
  }
  return list;
}
