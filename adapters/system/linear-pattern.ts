import { type Edge, type PatternNode, parsePattern } from './pattern-syntax.ts';
import type { WorkMeter } from './work-meter.ts';

const MAX_LENGTH = 1_000;
/** Repetitions are expanded, so `(a{99}){99}` is long although it looks short. */
const MAX_STATES = 5_000;

type State =
  | { readonly kind: 'one'; readonly matches: (character: string) => boolean; readonly next: number }
  | { readonly kind: 'edge'; readonly edge: Edge; readonly next: number }
  | { readonly kind: 'fork'; next: number; readonly other: number }
  | { readonly kind: 'found' };

/**
 * Regular expression that a customer supplied. All its branches are followed in parallel (Thompson 1968), so a text takes at most its
 * length times the number of states, where the backtracking of the engine may never end. Every step is counted.
 */
export class LinearPattern {
  readonly #pattern: string;
  readonly #states: readonly State[];
  readonly #initialState: number;
  readonly #meter: WorkMeter;

  /** @throws Error for a pattern that is invalid, not linear, or too long. */
  constructor(pattern: string, meter: WorkMeter) {
    if (pattern.length > MAX_LENGTH) throw new Error(`a pattern is longer than ${MAX_LENGTH} characters`);
    const builder = new Builder();
    this.#initialState = builder.add(parsePattern(pattern), 0);
    this.#states = builder.states;
    this.#pattern = pattern;
    this.#meter = meter;
  }

  /** Distinguishes patterns by name in the schema compiler. */
  toString(): string {
    return `/${this.#pattern}/`;
  }

  /** Returns true if the pattern matches anywhere in `text`. @throws WorkExhausted */
  test(text: string): boolean {
    const characters = [...text];
    const visitedAt = new Int32Array(this.#states.length).fill(-1);
    this.#meter.spend(characters.length + visitedAt.length);
    let waiting: number[] = [];
    for (let position = 0; position <= characters.length; position++) {
      // A match may begin at any position.
      waiting.push(this.#initialState);
      const nextStates: number[] = [];
      const character = characters[position];
      for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
        const state = this.#states[index];
        if (state === undefined || visitedAt[index] === position) continue;
        visitedAt[index] = position;
        this.#meter.spend(1);
        if (state.kind === 'found') return true;
        if (state.kind === 'fork') waiting.push(state.next, state.other);
        else if (state.kind === 'edge') {
          if (isAt(state.edge, characters[position - 1], character)) waiting.push(state.next);
        } else if (character !== undefined && state.matches(character)) nextStates.push(state.next);
      }
      waiting = nextStates;
    }
    return false;
  }
}

function isAt(edge: Edge, previous: string | undefined, current: string | undefined): boolean {
  if (edge === 'start') return previous === undefined;
  if (edge === 'end') return current === undefined;
  return (isWord(previous) !== isWord(current)) === (edge === 'word');
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /^\w$/.test(character);
}

/** Compiles a pattern into states, from its end to its beginning. State 0 is the match. */
class Builder {
  readonly states: State[] = [{ kind: 'found' }];
  #added = 0;

  /** @returns the initial state of `node`, given the state that follows it. */
  add(node: PatternNode, nextState: number): number {
    this.#count();
    switch (node.kind) {
      case 'one':
        return this.#push({ kind: 'one', matches: node.matches, next: nextState });
      case 'edge':
        return this.#push({ kind: 'edge', edge: node.edge, next: nextState });
      case 'all':
        return node.parts.reduceRight((following, part) => this.add(part, following), nextState);
      case 'any':
        return node.options
          .map((option) => this.add(option, nextState))
          .reduce((alternative, state) => this.#push({ kind: 'fork', next: state, other: alternative }));
      case 'repeat':
        return this.#repeat(node.node, node.min, node.max, nextState);
    }
  }

  #repeat(node: PatternNode, min: number, max: number, nextState: number): number {
    let initialState = nextState;
    if (max === Infinity) {
      const loop: State = { kind: 'fork', next: nextState, other: nextState };
      initialState = this.#push(loop);
      loop.next = this.add(node, initialState);
    } else {
      for (let i = min; i < max; i++) initialState = this.#push({ kind: 'fork', next: this.add(node, initialState), other: nextState });
    }
    for (let i = 0; i < min; i++) initialState = this.add(node, initialState);
    return initialState;
  }

  #push(state: State): number {
    this.#count();
    return this.states.push(state) - 1;
  }

  /** Counts additions, not states: empty repetitions add no states but still take time. */
  #count(): void {
    if (++this.#added > MAX_STATES) throw new Error('a pattern has too many repetitions');
  }
}
