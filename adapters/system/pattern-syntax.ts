/** Position between two characters, for `^`, `$`, `\\b` and `\\B`. */
export type Edge = 'start' | 'end' | 'word' | 'inside';

export type PatternNode =
  | { readonly kind: 'one'; readonly matches: (character: string) => boolean }
  | { readonly kind: 'edge'; readonly edge: Edge }
  | { readonly kind: 'all'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'any'; readonly options: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly node: PatternNode; readonly min: number; readonly max: number };

/** Matches one character: an escape, a class, or the character itself. */
const ATOM =
  /\\(?:[pPu]\{[^}]*\}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|.)|\[(?:\\.|[^\]\\])*\]|[^\\]/suy;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y;
const GROUP = /\((?:\?:|\?<[^=!>][^>]*>|(?!\?))/y;
const EDGES: ReadonlyMap<string, Edge> = new Map([
  ['^', 'start'],
  ['$', 'end'],
  ['\\b', 'word'],
  ['\\B', 'inside'],
] as const);
/** `\\1` and `\\k<name>`: their match depends on earlier matches. */
const BACKREFERENCE = /^\\[1-9k]/;

/**
 * Parses a pattern as ECMAScript does with the `u` flag. The engine checks the grammar.
 * @throws Error for an invalid pattern, and for backreferences, lookarounds and modifiers, which cannot be matched in linear time.
 */
export function parsePattern(pattern: string): PatternNode {
  new RegExp(pattern, 'u');
  const reader = new PatternReader(pattern);
  return reader.alternatives();
}

class PatternReader {
  readonly #pattern: string;
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  alternatives(): PatternNode {
    const options = [this.#sequence()];
    while (this.#pattern[this.#at] === '|') {
      this.#at++;
      options.push(this.#sequence());
    }
    return { kind: 'any', options };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#at < this.#pattern.length && !'|)'.includes(this.#pattern[this.#at] ?? '')) {
      parts.push(this.#quantified(this.#pattern[this.#at] === '(' ? this.#group() : this.#atom()));
    }
    return { kind: 'all', parts };
  }

  #group(): PatternNode {
    if (this.#take(GROUP) === undefined) throw new Error('patterns must not contain lookaround or inline flags');
    const inside = this.alternatives();
    this.#at++;
    return inside;
  }

  #atom(): PatternNode {
    const [atom = ''] = this.#take(ATOM) ?? [];
    if (atom === '') throw new Error('a pattern could not be parsed');
    if (BACKREFERENCE.test(atom)) throw new Error('patterns must not contain backreferences');
    const edge = EDGES.get(atom);
    if (edge !== undefined) return { kind: 'edge', edge };
    if (!/^[\\[.]/.test(atom)) return { kind: 'one', matches: (character) => character === atom };
    const single = new RegExp(`^${atom}$`, 'u');
    return { kind: 'one', matches: (character) => single.test(character) };
  }

  #quantified(node: PatternNode): PatternNode {
    const [quantifier, sign, minimum = '', comma, maximum = ''] = this.#take(QUANTIFIER) ?? [];
    if (quantifier === undefined) return node;
    if (sign !== undefined) return { kind: 'repeat', node, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Infinity };
    const min = Number(minimum);
    return { kind: 'repeat', node, min, max: comma === '' ? min : maximum === '' ? Infinity : Number(maximum) };
  }

  #take(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = this.#at;
    const match = form.exec(this.#pattern) ?? undefined;
    this.#at += match?.[0].length ?? 0;
    return match;
  }
}
