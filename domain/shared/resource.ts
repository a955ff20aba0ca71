import type { z } from 'zod';
import type { Finding, Profile } from './finding.ts';
import type { JsonObject } from './json.ts';
import type { SecretMember } from './secrets.ts';

/**
 * One kind of resource, described once. The audit log, edit tags, what may be sent back to be written, import and export
 * come from this; `domain/resources.ts` lists all kinds.
 */
export type Resource<Stored> = {
  readonly kind: string;
  /** The repository of a tenant that holds it. */
  readonly repository: string;
  /** A document: kept as a whole, sealed, under its id, in a table named after its kind. */
  readonly isDocument?: true;
  /** Of a document: the revision of its tenant that a write raises. */
  readonly revision?: string;
  /**
   * Members whose values stand in the audit log. Of all others it tells the names: free text and addresses can hold what
   * nobody should read there, and a hash of a short value gives the value away. Absent: the log knows no such kind.
   */
  readonly shown?: readonly string[];
  /** Members of which it tells something made of their values: of certificates the fingerprints. */
  readonly toldAs?: Readonly<Record<string, (value: never) => unknown>>;
  /** Members that the log passes over: they say nothing, or what the entry says anyway. */
  readonly silent?: readonly string[];
  /** What became of it, where that has another name. */
  readonly actionOf?: (before: Stored, after: Stored, changed: readonly string[]) => ChangeAction;
  /**
   * The part that administrators edit: an edit tag covers it. What changes by itself, such as a counter or a signature,
   * is left out. Absent: nobody edits it.
   */
  readonly edited?: (stored: Stored) => unknown;
  /** How it stands where nothing is stored: what readers are shown then, and go out from. */
  readonly unset?: Stored;
  /**
   * Members of answers, dotted, that cannot be written and that the service changes by itself, or others change elsewhere:
   * those who send back what they read may have read another value.
   */
  readonly changing?: readonly string[];
  /** Lists of answers whose entries come and go by themselves, by the member that tells the entries apart. */
  readonly entries?: Readonly<Record<string, string>>;
  /** Members, dotted, that no answer shows: `resourceRoutes` hides them. */
  readonly secrets?: Readonly<Record<string, SecretMember>>;
  /** What is allowed and somebody will refuse, or a profile does. Absent: nothing is known that could be. */
  readonly findings?: (stored: Stored, profile: Profile | null) => readonly Finding[];
  /** How it is described in a folder of configuration files. Absent: it is no configuration. */
  readonly file?: DescribedByFile<Stored>;
};

/** When a document was made, and written last. */
export type Timed = { readonly createdAt: Date; readonly updatedAt: Date };

export type ChangeAction = 'changed' | 'rotated' | 'renewed';

type DescribedByFile<Stored> = {
  /** Path within the folder of the tenant, without an ending; `*` stands for the name of the file. */
  readonly path: string;
  /** The member that names it, which the name of the file does otherwise. Absent for what a tenant has one of. */
  readonly id?: 'id' | 'clientId';
  /** Its members, in the order in which they are written. */
  readonly body: z.ZodObject;
  /** Another form, which a document has that has this member. */
  readonly alternative?: { readonly member: string; readonly body: z.ZodObject };
  /** Kinds that it names: they are imported before it. */
  readonly refersTo: readonly string[];
  /** Mends members that came out of a variable, which holds nothing but text. */
  readonly read?: (value: JsonObject) => JsonObject;
  /** What is stored, as a document. Times and members without a value do not count. */
  readonly write: (stored: Stored, all: readonly Stored[]) => object;
};

/** Describes a kind; the type remembers what is stored of it. */
export function resource<Stored>() {
  return <const Description extends Resource<Stored>>(description: Description): Description & { readonly stored?: Stored } => description;
}
