const REASONS: readonly (readonly [RegExp, string])[] = [
  [/status_revoked/, 'The issuer revoked this credential, and says so in its signed status list.'],
  [/status_suspended/, 'The issuer suspended this credential.'],
  [/unreferenced_disclosure|digest_mismatch/, 'A claim is not the one that the issuer signed: its digest is not in the credential.'],
  [/nonce_mismatch/, 'The answer was signed for another request, so it may be one that somebody recorded.'],
  [/kb_iat_window/, 'The holder’s signature was made long before this request.'],
  [
    /kb_signature/,
    'The signature of the holder is by another key than the one in the credential: the credential belongs to another holder.',
  ],
  [/device signature/, 'The signature of the phone does not fit: it was made with another key, or for another request.'],
  [/missing_claim|query/, 'A claim that was asked for is missing.'],
  [/declin|denied/i, 'The user declined. Nothing was shown.'],
];

export function reasonInWords(reason = ''): string {
  return REASONS.find(([pattern]) => pattern.test(reason))?.[1] ?? 'The session says why.';
}
