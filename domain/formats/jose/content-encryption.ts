/** RFC 7518 section 5.1; published in the metadata. */
export const CONTENT_ENCRYPTION = ['A128GCM', 'A256GCM'] as const;
export type ContentEncryption = (typeof CONTENT_ENCRYPTION)[number];

/** RFC 7516 section 4.1.3 */
export type Compression = 'DEF';
