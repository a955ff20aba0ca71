import { computed, signal } from '@preact/signals';
import { byProvider, type Identity, logIn, redeem } from '../api/log-in.ts';
import { comeBack } from '../api/provider-login.ts';
import { type ConsoleAddress, place, reread, takeFromAddress } from './place.ts';

export const identities = signal<readonly Identity[]>([]);
const chosen = signal<string | undefined>(undefined);

export const current = computed(() => identities.value.find(({ clientId }) => clientId === chosen.value));

export const startFault = signal<string | undefined>(undefined);

/** Opens what the link that led here carries: a ticket that is good once. */
export async function start(): Promise<void> {
  // A link may also be `/console#ticket=…`, without a page.
  const bare = /^ticket=([\w-]+)$/.exec(place.value.page)?.[1];
  if (bare !== undefined) history.replaceState(null, '', '#try');
  if (bare !== undefined) place.value = { page: 'try', id: '', query: new URLSearchParams() };
  const ticket = bare ?? takeFromAddress('ticket');
  try {
    const returned = await comeBack();
    if (returned !== undefined) {
      reread();
      become(await byProvider(returned));
    } else if (ticket !== undefined) become(await redeem(ticket));
  } catch (error) {
    startFault.value = error instanceof Error ? error.message : String(error);
  }
}

export async function enter(clientId: string, secret: string): Promise<Identity> {
  const identity = await logIn(clientId, secret);
  become(identity);
  return identity;
}

/** Adds it to those that are known, and goes on as it. */
export function become(identity: Identity): void {
  know(identity);
  chosen.value = identity.clientId;
}

export function know(identity: Identity): void {
  identities.value = [...identities.value.filter(({ clientId }) => clientId !== identity.clientId), identity];
}

export const crossed = signal<{ readonly from: Identity; readonly at: ConsoleAddress } | undefined>(undefined);

export function choose(clientId: string): void {
  const from = current.value;
  chosen.value = clientId;
  const isOther = from !== undefined && from.tenantId !== current.value?.tenantId;
  if (isOther) crossed.value = place.value.id === '' ? undefined : { from, at: place.value };
}

export function leave(clientId: string): void {
  identities.value = identities.value.filter((identity) => identity.clientId !== clientId);
  if (chosen.value === clientId) chosen.value = identities.value[0]?.clientId;
}

export type { Identity };
