// Prints the types that each file names, as the compiler attributes them: TREE -> file, edge lines.
// Missing libraries are no obstacle: types of the tree are attributed all the same.
import com.sun.source.tree.*;
import com.sun.source.util.*;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import javax.lang.model.element.*;
import javax.tools.*;

public class JavaImports {
  public static void main(String[] arguments) throws Exception {
    Path root = Path.of(arguments[0]).toRealPath();
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    StandardJavaFileManager manager = compiler.getStandardFileManager(d -> {}, null, null);
    List<Path> sources;
    try (Stream<Path> walk = Files.walk(root)) {
      sources = walk.filter(p -> p.toString().endsWith(".java")).filter(p -> !p.endsWith("module-info.java"))
          .filter(p -> !p.endsWith("package-info.java")).collect(Collectors.toList());
    }
    JavacTask task = (JavacTask) compiler.getTask(null, manager, d -> {},
        List.of("-proc:none", "-XDshould-stop.ifError=FLOW", "-Xmaxerrs", "100000"), null,
        manager.getJavaFileObjectsFromPaths(sources));
    Map<String, String> files = new HashMap<>();
    List<CompilationUnitTree> units = new ArrayList<>();
    for (CompilationUnitTree unit : task.parse()) {
      units.add(unit);
      String file = root.relativize(Path.of(unit.getSourceFile().toUri())).toString();
      System.out.println("file\t" + file);
      String prefix = unit.getPackageName() == null ? "" : unit.getPackageName() + ".";
      for (Tree type : unit.getTypeDecls())
        if (type instanceof ClassTree) files.put(prefix + ((ClassTree) type).getSimpleName(), file);
    }
    task.analyze();
    Trees trees = Trees.instance(task);
    for (CompilationUnitTree unit : units) {
      String file = root.relativize(Path.of(unit.getSourceFile().toUri())).toString();
      Set<String> targets = new TreeSet<>();
      new TreePathScanner<Void, Void>() {
        void add() {
          Element element = trees.getElement(getCurrentPath());
          boolean isStatic = getCurrentPath().getParentPath().getLeaf() instanceof ImportTree;
          if (element == null || !(element instanceof TypeElement || isStatic)) return;
          while (element != null && element.getEnclosingElement() != null
              && element.getEnclosingElement().getKind() != ElementKind.PACKAGE)
            element = element.getEnclosingElement();
          String target = files.get(String.valueOf(element));
          if (target != null && !target.equals(file)) targets.add(target);
        }
        @Override public Void visitIdentifier(IdentifierTree node, Void v) { add(); return super.visitIdentifier(node, v); }
        @Override public Void visitMemberSelect(MemberSelectTree node, Void v) { add(); return super.visitMemberSelect(node, v); }
      }.scan(unit, null);
      for (String target : targets) System.out.println("edge\t" + file + "\t" + target);
    }
  }
}
