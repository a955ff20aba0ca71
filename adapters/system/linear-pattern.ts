import { type Edge, type PatternNode, parsePattern } from './pattern-syntax.ts';
import type { WorkMeter } from './work-meter.ts';

const MAX_LENGTH = 1_000;
/** Repetitions are written out, so `(a{99}){99}` is long although it looks short. */
const MAX_STATES = 5_000;

type State =
  | { readonly kind: 'one'; readonly matches: (character: string) => boolean; readonly next: number }
  | { readonly kind: 'edge'; readonly edge: Edge; readonly next: number }
  | { readonly kind: 'fork'; next: number; readonly other: number }
  | { readonly kind: 'found' };

/**
 * A regular expression of a stranger. All its branches are followed together (Thompson 1968), so a text takes at most its length times the
 * states of the pattern, where the engine's own backtracking can take for ever. Every step is charged.
 */
export class LinearPattern {
  readonly #pattern: string;
  readonly #states: readonly State[];
  readonly #first: number;
  readonly #meter: WorkMeter;

  /** @throws Error for a pattern that is not valid, not linear, or too long. */
  constructor(pattern: string, meter: WorkMeter) {
    if (pattern.length > MAX_LENGTH) throw new Error(`a pattern is longer than ${MAX_LENGTH} characters`);
    const builder = new Builder();
    this.#first = builder.add(parsePattern(pattern), 0);
    this.#states = builder.states;
    this.#pattern = pattern;
    this.#meter = meter;
  }

  /** Tells patterns apart where the schema compiler names them. */
  toString(): string {
    return `/${this.#pattern}/`;
  }

  /** Whether the pattern is found anywhere in `text`. @throws WorkExhausted */
  test(text: string): boolean {
    const characters = [...text];
    const visitedAt = new Int32Array(this.#states.length).fill(-1);
    this.#meter.spend(characters.length + visitedAt.length);
    let waiting: number[] = [];
    for (let at = 0; at <= characters.length; at++) {
      // A match may begin at any place.
      waiting.push(this.#first);
      const next: number[] = [];
      const here = characters[at];
      for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
        const state = this.#states[index];
        if (state === undefined || visitedAt[index] === at) continue;
        visitedAt[index] = at;
        this.#meter.spend(1);
        if (state.kind === 'found') return true;
        if (state.kind === 'fork') waiting.push(state.next, state.other);
        else if (state.kind === 'edge') {
          if (isAt(state.edge, characters[at - 1], here)) waiting.push(state.next);
        } else if (here !== undefined && state.matches(here)) next.push(state.next);
      }
      waiting = next;
    }
    return false;
  }
}

function isAt(edge: Edge, before: string | undefined, here: string | undefined): boolean {
  if (edge === 'start') return before === undefined;
  if (edge === 'end') return here === undefined;
  return (isWord(before) !== isWord(here)) === (edge === 'word');
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /^\w$/.test(character);
}

/** Writes a pattern out as states, from its end to its beginning. State 0 is the match. */
class Builder {
  readonly states: State[] = [{ kind: 'found' }];
  #added = 0;

  /** @returns the state in which `node` begins, given the one that follows it. */
  add(node: PatternNode, next: number): number {
    this.#count();
    switch (node.kind) {
      case 'one':
        return this.#push({ kind: 'one', matches: node.matches, next });
      case 'edge':
        return this.#push({ kind: 'edge', edge: node.edge, next });
      case 'all':
        return node.parts.reduceRight((following, part) => this.add(part, following), next);
      case 'any':
        return node.options
          .map((option) => this.add(option, next))
          .reduce((other, first) => this.#push({ kind: 'fork', next: first, other }));
      case 'repeat':
        return this.#repeat(node.node, node.min, node.max, next);
    }
  }

  #repeat(node: PatternNode, min: number, max: number, next: number): number {
    let first = next;
    if (max === Infinity) {
      const loop: State = { kind: 'fork', next, other: next };
      first = this.#push(loop);
      loop.next = this.add(node, first);
    } else {
      for (let i = min; i < max; i++) first = this.#push({ kind: 'fork', next: this.add(node, first), other: next });
    }
    for (let i = 0; i < min; i++) first = this.add(node, first);
    return first;
  }

  #push(state: State): number {
    this.#count();
    return this.states.push(state) - 1;
  }

  /** Counts what is added rather than what there is: empty repetitions add nothing and take their time all the same. */
  #count(): void {
    if (++this.#added > MAX_STATES) throw new Error('a pattern has too many repetitions');
  }
}
