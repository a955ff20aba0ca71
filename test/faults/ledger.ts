import { appendFileSync, copyFileSync } from 'node:fs';
import type { StatusEntry } from '../support/revocable-cards.ts';

/** An issuance as the callers know it. */
export type Issuance = {
  readonly session: string;
  code?: string;
  /** Answers with success to who redeemed the code; how often it may be is once. */
  redeemed: number;
  /** Nonces with the number of credential requests with them that were answered with success. */
  readonly nonces: Map<string, number>;
  /** Everything that was ever handed out for it. */
  readonly entries: StatusEntry[];
  /** Orders to revoke it: all that were sent, and those that were acknowledged. */
  readonly revocations: { asked: number; told: number };
};

/** A presentation as the callers know it. */
export type Presentation = {
  readonly session: string;
  /** Whether a backend must be notified. */
  readonly isHooked: boolean;
  /** Answers with success to a wallet. */
  presented: number;
  /** Whether the response of the wallet was rejected. */
  wasRefused: boolean;
  /** Successes of those who brought the response code. */
  brought: number;
};

/** Writes of an administrator to one document. */
export type RequestedWrites = { asked: number; told: number };

/**
 * Records of all responses, outside of the service: in memory for the checker, and in an append-only file for the analysis
 * of a fault.
 */
export class Ledger {
  readonly issuances = new Map<string, Issuance>();
  readonly presentations = new Map<string, Presentation>();
  readonly config: RequestedWrites = { asked: 0, told: 0 };
  /** Calls of the backend: the ids of deliveries, by session. */
  readonly deliveries = new Map<string, Map<string, number>>();
  /** Violations that a response itself shows. */
  readonly violations: string[] = [];
  /** `refused` counts refused connections. */
  readonly counts = { answered: 0, unanswered: 0, refused: 0, unavailable: 0 };
  /** Codes that were redeemed, also where that is forgotten rightly. */
  readonly spent: string[] = [];
  readonly #file: string;
  /** Sessions about which something was said since the mark. */
  readonly #since = new Set<string>();
  #toldAtMark = 0;

  constructor(file: string) {
    this.#file = file;
  }

  log(description: string, about: { readonly session?: string; readonly [name: string]: unknown }): void {
    if (about.session !== undefined) this.#since.add(about.session);
    appendFileSync(this.#file, `${JSON.stringify({ at: new Date().toISOString(), what: description, ...about })}\n`);
  }

  /** Copies the records for the analysis of a fault. */
  keep(file: string): void {
    copyFileSync(this.#file, file);
  }

  violate(description: string): void {
    this.violations.push(description);
    this.log('violation', { detail: description });
  }

  /** Later records may be lost with the database. */
  mark(): void {
    this.#since.clear();
    this.#toldAtMark = this.config.told;
  }

  /** The database is as it was at the mark, and an operator knows it. What was handed out stays handed out. */
  lose(): void {
    for (const session of this.#since) for (const byId of [this.issuances, this.presentations, this.deliveries]) byId.delete(session);
    this.config.told = this.#toldAtMark;
    this.log('lost', { sessions: this.#since.size });
  }

  offered(session: string): Issuance {
    const issuance: Issuance = { ...{ session, redeemed: 0, nonces: new Map(), entries: [] }, revocations: { asked: 0, told: 0 } };
    this.issuances.set(session, issuance);
    this.log('offered', { session });
    return issuance;
  }

  requested(session: string, isHooked: boolean): Presentation {
    const presentation = {
      session,
      isHooked,
      presented: 0,

      wasRefused: false,
      brought: 0,
    };
    this.presentations.set(session, presentation);
    this.log('requested', { session, isHooked });
    return presentation;
  }

  redeemed(issuance: Issuance): void {
    issuance.redeemed++;
    if (issuance.code !== undefined) this.spent.push(issuance.code);
    this.log('redeemed', { session: issuance.session });
    if (issuance.redeemed > 1) this.violate(`the code of ${issuance.session} was redeemed twice`);
  }

  issued(issuance: Issuance, nonce: string, entries: readonly StatusEntry[]): void {
    const useCount = (issuance.nonces.get(nonce) ?? 0) + 1;
    issuance.nonces.set(nonce, useCount);
    issuance.entries.push(...entries);
    this.log('issued', { session: issuance.session, entries: entries.map(entryKey) });
    if (useCount > 1) this.violate(`a nonce was taken twice for ${issuance.session}`);
  }

  presented(presentation: Presentation): void {
    presentation.presented++;
    this.log('presented', { session: presentation.session });
    if (presentation.presented > 1) this.violate(`${presentation.session} took two presentations`);
  }

  brought(presentation: Presentation): void {
    presentation.brought++;
    this.log('brought', { session: presentation.session });
    if (presentation.brought > 1) this.violate(`a response code of ${presentation.session} was taken twice`);
  }

  delivered(session: string, id: string): void {
    const ids = this.deliveries.get(session) ?? new Map<string, number>();
    this.deliveries.set(session, ids);
    ids.set(id, (ids.get(id) ?? 0) + 1);
    this.log('delivered', { session, id });
  }

  get revoked(): readonly Issuance[] {
    return [...this.issuances.values()].filter(({ revocations }) => revocations.told > 0);
  }
}

export const entryKey = ({ listId, idx }: Pick<StatusEntry, 'listId' | 'idx'>) => `${listId} ${idx}`;
