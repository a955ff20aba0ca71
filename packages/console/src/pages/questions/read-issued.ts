import { ask, askPage } from '../../api/call.ts';
import { at, isRecord, put, textAt } from '../../parts/json-paths.ts';
import type { Identity } from '../../shell/identities.ts';

/** More are not offered to choose from; the JSON beside the form takes any type. */
const MOST = 500;

export async function readIssued(caller: Identity, signal: AbortSignal): Promise<readonly unknown[]> {
  const rows: unknown[] = [];
  let cursor: string | undefined;
  do {
    const page = await askPage<unknown>(caller, '/issuer/credentials', { limit: 100, cursor }, signal);
    rows.push(...page.rows);
    cursor = page.next;
  } while (cursor !== undefined && rows.length < MOST);
  const hosted = rows.find(isUnnamed);
  if (hosted === undefined) return rows;
  // The service names these types by its own address, which one of them tells of all.
  const own = (id: string) => `/${caller.tenantId}/vct/${encodeURIComponent(id)}`;
  const id = textAt(hosted, 'id');
  const { vct } = await ask<{ readonly vct: string }>(undefined, 'GET', own(id), { signal });
  const base = vct.slice(0, vct.lastIndexOf('/') + 1);
  return rows.map((row) => (isUnnamed(row) ? put(row, ['vct'], `${base}${encodeURIComponent(textAt(row, 'id'))}`) : row));
}

function isUnnamed(row: unknown): boolean {
  const vct = at(row, 'vct');
  if (textAt(row, 'config', 'format') === 'mso_mdoc') return false;
  return textAt(isRecord(vct) ? at(vct, 'vct') : vct) === '';
}
