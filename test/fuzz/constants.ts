import { encodeCbor } from '../../domain/formats/cbor/encode.ts';

/** Parameters of the signed seeds. */
export const SECONDS = 1_790_000_000;
export const NOW = new Date(SECONDS * 1000);
export const AUDIENCE = 'https://service.example/tenant';
export const NONCE = 'nonce-1';
export const STATUS_URI = 'https://status.example/1';
/** A SessionTranscript; which one does not matter. */
export const TRANSCRIPT = encodeCbor([null, null, ['OpenID4VPHandover', Buffer.alloc(32, 1)]]);
