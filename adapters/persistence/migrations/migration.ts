/** Statements that bring a database one step up. They run in one transaction with those of all others that are due. */
export abstract class Migration {
  abstract readonly name: string;
  readonly statements: string[] = [];

  abstract up(): void;

  addSql(statement: string): void {
    this.statements.push(statement);
  }
}
