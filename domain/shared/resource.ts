import type { z } from 'zod';
import type { Finding, Profile } from './finding.ts';
import type { JsonObject } from './json.ts';
import type { SecretMember } from './secrets.ts';

/**
 * Description of one kind of resource. Audit log, edit tags, read-only properties, import and export are derived from it;
 * `domain/resources.ts` lists all kinds.
 */
export type Resource<Stored> = {
  readonly kind: string;
  readonly repository: string;
  /** A document is stored as a whole, sealed, under its id, in a table named after its kind. */
  readonly isDocument?: true;
  /** The tenant's revision that a write of the document increments. */
  readonly revision?: string;
  /**
   * Properties whose values are written to the audit log. Of all others only names are logged: free text and addresses may be sensitive,
   * and a hash of a short value reveals it. Absent: the kind is not audited.
   */
  readonly auditedValues?: readonly string[];
  /** Properties that are logged in a derived form: certificates as fingerprints. */
  readonly auditedAs?: Readonly<Record<string, (value: never) => unknown>>;
  /** Properties that are not logged, because they carry no information. */
  readonly unaudited?: readonly string[];
  /** The action in the audit log, if it is not `changed`. */
  readonly actionOf?: (before: Stored, after: Stored, changed: readonly string[]) => ChangeAction;
  /**
   * The part that administrators edit, which the edit tag covers. Values that change automatically, such as counters or signatures, are
   * excluded. Absent: the kind is not edited.
   */
  readonly editablePart?: (stored: Stored) => unknown;
  /** The value that readers get while nothing is stored, and that edits start from. */
  readonly unset?: Stored;
  /** Dotted properties of responses that are read-only and may change between a read and a write. */
  readonly volatileProperties?: readonly string[];
  /** Arrays of responses whose entries change automatically, with the property that identifies an entry. */
  readonly entries?: Readonly<Record<string, string>>;
  /** Dotted properties that are hidden in responses by `resourceRoutes`. */
  readonly secrets?: Readonly<Record<string, SecretMember>>;
  /** Warnings about valid values. Absent: there are none. */
  readonly findings?: (stored: Stored, profile: Profile | null) => readonly Finding[];
  /** Representation in a folder of configuration files. Absent: the kind is no configuration. */
  readonly file?: DescribedByFile<Stored>;
};

/** Creation and last update of a document. */
export type Timed = { readonly createdAt: Date; readonly updatedAt: Date };

export type ChangeAction = 'changed' | 'rotated' | 'renewed';

type DescribedByFile<Stored> = {
  /** Path within the tenant's folder without an extension; `*` stands for the file name. */
  readonly path: string;
  /** The id property, which the file name provides. Absent for a singleton. */
  readonly id?: 'id' | 'clientId';
  /** Its properties, in the order of export. */
  readonly body: z.ZodObject;
  /** Another schema, for documents with this property. */
  readonly alternative?: { readonly member: string; readonly body: z.ZodObject };
  /** Kinds that it refers to: they are imported first. */
  readonly refersTo: readonly string[];
  /** Converts properties that came from a variable, which is always text. */
  readonly read?: (value: JsonObject) => JsonObject;
  /** Converts the stored value to a document. Times and properties without a value are omitted. */
  readonly write: (stored: Stored, all: readonly Stored[]) => object;
};

/** Declares a kind; the type parameter is the stored type. */
export function resource<Stored>() {
  return <const Description extends Resource<Stored>>(description: Description): Description & { readonly stored?: Stored } => description;
}
