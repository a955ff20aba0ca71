import type { Exchange, Json, Path, ReadOffer, ReadRequest, StoredCredential } from './core/index.ts';

/** Replaces control characters, which a terminal would interpret, in untrusted text. */
export function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, '\u{fffd}');
}

export function offerInWords({ issuer, credentials, grant, txCode }: ReadOffer): string {
  const lines = [`${plain(issuer.name)} (${plain(issuer.identifier)}) offers:`];
  for (const { look, format, type, labels } of credentials) {
    lines.push(`  ${plain(look.name)}: ${plain(type)}, ${plain(format)}`);
    if (labels.length > 0) lines.push(`    with ${plain(labels.map(({ name }) => name).join(', '))}`);
  }
  if (grant === 'authorization_code') lines.push('You approve it on a page of the issuer.');
  if (txCode !== undefined) lines.push(`It requires a transaction code${txCode.description ? `: ${plain(txCode.description)}` : '.'}`);
  return lines.join('\n');
}

export function cardInWords({ look, claims, validity, status, signer, labels }: StoredCredential): string {
  const lines = [`${plain(look.name)}${signer === undefined ? '' : `, signed by ${plain(signer.subject)}`}`];
  for (const { path, value } of leaves(claims)) lines.push(`  ${nameOf(path, labels)}: ${displayValue(value)}`);
  if (validity.until !== undefined) lines.push(`  (valid until ${validity.until})`);
  if (status !== undefined) lines.push(`  (can be revoked: entry ${status.index} of ${plain(status.uri)})`);
  return lines.join('\n');
}

export function requestInWords({ verifier, queries, sets, transactionData }: ReadRequest): string {
  const { name, clientId, signer, responseUri } = verifier;
  const lines = [
    `${plain(name ?? new URL(responseUri).host)} asks.`,
    `  ${signer === undefined ? 'The request is not signed' : `Signed by ${plain(signer.subject)}`}; it is ${plain(clientId)}`,
    `  The response is sent to ${plain(responseUri)}`,
  ];
  for (const { purpose } of sets) if (purpose !== undefined) lines.push(`  Purpose: ${plain(purpose)}`);
  for (const data of transactionData) lines.push(`  You would agree to: ${plain(JSON.stringify(data))}`);
  for (const { id, types, format, asked: requestedClaims, matches } of queries) {
    const requested = requestedClaims.map(({ path }) => path.join('.')).join(', ') || 'no claim';
    lines.push(`It requests ${plain(requested)} of ${plain(types.join(' or ') || format)} ("${plain(id)}").`);
    const [match] = matches;
    if (match === undefined) lines.push('  No credential of this wallet matches.');
    else {
      lines.push(`  ${plain(match.credential.look.name)} would tell:`);
      for (const { path, value } of match.claims) lines.push(`    ${nameOf(path, match.credential.labels)}: ${displayValue(value)}`);
    }
  }
  return lines.join('\n');
}

export function exchangeInWords(exchange: Exchange): string {
  const { method, url, requestBody, status, responseBody, milliseconds, error } = exchange;
  const outcome = status === undefined ? `no answer: ${plain(String(error))}` : `${status}`;
  const body = (text: string) => text.split('\n').map(plain).join('\n');
  const lines = [`--- ${method} ${plain(url)}`, body(requestBody), `${outcome} after ${milliseconds} ms`];
  return [...lines, body(responseBody)].filter((line) => line !== '').join('\n');
}

/** First line of an external error, with the server's error description. */
export function errorInWords(error: unknown): string {
  if (!(error instanceof Error)) return plain(String(error));
  const errorResponse = (error as { errorResponse?: { error?: string; error_description?: string } }).errorResponse;
  const [firstLine = ''] = error.message.split('\n');
  const cause = error.cause instanceof Error ? error.cause.message.split('\n')[0] : undefined;
  const reason = errorResponse?.error_description ?? errorResponse?.error ?? cause;
  return plain(reason === undefined || firstLine.includes(reason) ? firstLine : `${firstLine} (${reason})`);
}

function leaves(value: Json, path: Path = []): { path: Path; value: Json }[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [{ path, value }];
  return Object.entries(value).flatMap(([name, entry]) => leaves(entry, [...path, name]));
}

function nameOf(path: Path, labels: StoredCredential['labels']): string {
  const label = labels.find((candidate) => candidate.path.join('\n') === path.join('\n'));
  return plain(label?.name ?? path.map((step) => step ?? '*').join('.'));
}

function displayValue(value: Json): string {
  return plain(typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 200);
}
